"""A .tflite file is compiled as it is; what is none, or contradicts itself, is named by operator and tensor."""

import numpy as np
import pytest

from tests.cli.test_app import refused
from tests.support.tflite_cases import content_of, float_network
from tests.support.tflite_files import TfliteFile
from tilewright.compiler.compile import compile_file, emit_artefact
from tilewright.compiler.errors import BadModelError, CompileError, UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InputError
from tilewright.isa.machine import preset
from tilewright.models import FOLDER, builtin
from tilewright.runtime.model_source import ModelOrigin, find_model
from tilewright.runtime.oracle.inputs import random_inputs
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

KWS = FOLDER / "mlperf-kws.tflite"


@pytest.mark.parametrize("name", ["kws", "resnet8"])
def test_a_network_takes_the_cycles_of_its_export(name):
    theirs = InferenceSession(builtin(f"mlperf-{name}"))
    ours = InferenceSession(FOLDER / f"mlperf-{name}.tflite")
    for session in (theirs, ours):
        session.run(None, random_inputs(session.job.inputs).arrays)
    assert ours.report.cycles == theirs.report.cycles


def test_a_compiled_file_runs_on_its_own(tmp_path):
    """Its average is read by another quantisation than it was written with, and stays on chip."""
    folder = emit_artefact(compile_file(KWS, preset("base")), find_model(str(KWS), Silence()).path,
                           tmp_path / "kws").folder
    given = np.random.default_rng(2).integers(-128, 128, (1, 49, 10, 1)).astype(np.int8)
    found = [InferenceSession(model).run(None, {"input_1": given})[0] for model in (folder, KWS)]
    assert np.array_equal(*found)


def test_a_file_that_is_quantised_already_is_refused_by_its_own_name(tmp_path):
    with pytest.raises(InputError, match=r"mlperf-kws\.tflite"):
        find_model(str(KWS), Silence(), calibrate=tmp_path / "samples.npz")


def test_floats_are_quantised_and_constants_in_half_precision_are_read(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(float_network())
    samples = tmp_path / "samples.npz"
    np.savez(samples, image=np.random.default_rng(1).normal(0, 1, (8, 12, 12, 3)).astype(np.float32))
    source = find_model(str(path), Silence(), calibrate=samples)
    assert source.origin is ModelOrigin.QUANTISED
    assert {layer.kind for layer in compile_network(source.path).layers} == {"conv", "average"}


def test_operators_that_a_file_numbers_in_one_field_alone_are_those():
    """ai-edge-quantizer writes the numbers of the QUANTIZE and DEQUANTIZE that it inserts so."""
    found = []
    for both in (True, False):
        file = TfliteFile()
        image, last = (file.tensor((1, 4, 4, 8), dtype="float32") for _ in range(2))
        levels, bounded = (file.tensor((1, 4, 4, 8), 0.1) for _ in range(2))
        for kind, *tensors in (("QUANTIZE", image, levels), ("RELU", levels, bounded), ("DEQUANTIZE", bounded, last)):
            file.operator(kind, tensors[:1], tensors[1:])
        found.append([node.op_type for node in read_model(file.content([image], [last], both_codes=both)).graph.node])
    assert found[0] == found[1]


def test_a_function_behind_a_product_of_rows_is_a_table():
    file, rng = TfliteFile(), np.random.default_rng(0)
    rows = file.tensor((1, 12, 8), 0.05)
    weights = file.constant(rng.integers(-127, 128, (16, 8)).astype(np.int8), 0.01)
    product, last = file.tensor((1, 12, 16), 0.1), file.tensor((1, 12, 16), 0.09)
    file.operator("FULLY_CONNECTED", [rows, weights], [product], KeepNumDims=True)
    file.operator("GELU", [product], [last], Approximate=False)
    assert [layer.kind for layer in compile_network(file.content([rows], [last])).layers] == ["conv"]


@pytest.mark.parametrize(("scales", "stated"), [([0.01, 0.02, 0.03, 0.04], (4, 1, 1, 4)), ([0.02], ())])
def test_float_constants_that_the_file_quantises_are_levels(scales, stated):
    """The converter leaves the weights of a network trained with fake quantisation so, and may state no shape."""
    file, rng = TfliteFile(), np.random.default_rng(0)
    image, real, result, last = (file.tensor((1, 6, 6, 4), dtype="float32") for _ in range(4))
    levels, rounded = file.tensor((1, 6, 6, 4), 0.05), file.tensor((1, 6, 6, 4), 0.1)
    held = rng.integers(-127, 128, (4, 1, 1, 4)).astype(np.int8)
    steps = held * np.array(scales).reshape(-1, 1, 1, 1)
    weights = file.constant((steps + rng.uniform(-0.004, 0.004, held.shape)).astype(np.float32))
    quantised, again = file.tensor(stated, scales), file.tensor((4, 1, 1, 4), dtype="float32")
    for kind, *tensors in (("QUANTIZE", image, levels), ("DEQUANTIZE", levels, real), ("QUANTIZE", weights, quantised),
                           ("DEQUANTIZE", quantised, again)):
        file.operator(kind, tensors[:1], tensors[1:])
    file.operator("CONV_2D", [real, again], [result], StrideH=1, StrideW=1, DilationHFactor=1, DilationWFactor=1)
    file.operator("QUANTIZE", [result], [rounded])
    file.operator("DEQUANTIZE", [rounded], [last])
    (layer,) = compile_network(file.content([image], [last])).layers
    np.testing.assert_array_equal(np.squeeze(layer.weights), np.squeeze(held))


def test_what_may_differ_is_said_and_nothing_else():
    def said(name):
        return [note for note in notes_of(read_model(content_of(name))) if "one level off" in note]

    assert not said("residual block")
    assert not said("depthwise by 3")
    assert "SOFTMAX" in said("softmax")[0]
    assert "RESIZE_BILINEAR" in said("bilinear by 3")[0]
    assert not said("bilinear by 2")


def damaged(at, value, name="mlperf-kws"):
    content = bytearray((FOLDER / f"{name}.tflite").read_bytes())
    content[at:at + len(value)] = value
    return bytes(content)


@pytest.mark.parametrize("content", [
    b"\x1c\x00\x00\x00TFL3" + bytes(40), KWS.read_bytes()[:2000], damaged(0, b"\xff\xff\xff\x7f"),
    b"\x00\x00\x00\x00TFL3",
], ids=["empty", "cut short", "an offset outside", "nothing"])
def test_a_damaged_file_is_called_that(content):
    with pytest.raises(BadModelError, match=r"damaged|contradicts itself"):
        read_model(content)


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "net.tflite"
    path.write_bytes(b"\x1c\x00\x00\x00TFL3" + bytes(40))
    assert "net.tflite" in refused(2, "check", path)


def of_one(kind, *, shape=(1, 8), result=(1, 8), options=None, **settings):
    file = TfliteFile()
    x, y = file.tensor(shape, 0.1, name="before", **settings), file.tensor(result, 0.1, name="behind", **settings)
    file.operator(kind, [x], [y], **(options or {}))
    return file.content([x], [y])


@pytest.mark.parametrize(("kind", "why"), [("SVDF", "not compiled"), ("CUSTOM", "own")])
def test_an_operator_that_is_not_read_is_named_with_its_place_and_tensor(kind, why):
    with pytest.raises(UnsupportedNodeError, match=why) as error:
        read_model(of_one(kind))
    assert "0: behind" in str(error.value)


def test_every_operator_that_is_not_read_is_named():
    file = TfliteFile()
    tensors = [file.tensor((1, 8), 0.1) for _ in range(3)]
    file.operator("SVDF", tensors[:1], tensors[1:2])
    file.operator("LSTM", tensors[1:2], tensors[2:])
    with pytest.raises(UnsupportedNodeError) as error:
        read_model(file.content(tensors[:1], tensors[2:]))
    assert [each.op for each in (error.value, *error.value.others)] == ["SVDF", "LSTM"]


def test_shapes_that_do_not_go_together_are_named():
    with pytest.raises(CompileError, match="behind"):
        read_model(of_one("RESHAPE", result=(1, 9)))
    with pytest.raises(CompileError, match="behind"):
        read_model(of_one("MAX_POOL_2D", options={"FilterHeight": 2, "FilterWidth": 2, "StrideH": 1, "StrideW": 1}))


def test_a_tensor_of_open_extents_is_named():
    with pytest.raises(UnsupportedModelError, match=r"before.*fixed"):
        read_model(of_one("RELU", shape=(1, -1)))


def test_data_of_another_size_than_the_shape_are_named():
    file = TfliteFile()
    x, y = file.tensor((1, 4), 0.1), file.tensor((1, 4), 0.1)
    short = file.tensor((4,), 0.1, data=np.zeros(3, np.int8), name="short")
    file.operator("ADD", [x, short], [y])
    with pytest.raises(BadModelError, match="short"):
        read_model(file.content([x], [y]))


def test_a_tensor_that_nothing_computes_is_named():
    file = TfliteFile()
    x, lost, y = file.tensor((1, 4), 0.1), file.tensor((1, 4), 0.1, name="lost"), file.tensor((1, 4), 0.1)
    file.operator("ADD", [x, lost], [y])
    with pytest.raises(BadModelError, match="lost"):
        read_model(file.content([x], [y]))


def test_activations_of_16_bits_are_refused():
    with pytest.raises(CompileError):
        read_model(of_one("RELU", dtype="int16"))


def test_a_kernel_that_is_wrong_is_not_followed_and_said_to_be():
    file = TfliteFile()
    x, y = file.tensor((1, 4, 4, 2), 0.1, name="before"), file.tensor((1, 2), 1.0, name="behind")
    axes = file.constant(np.array([1, 2], np.int32))
    file.operator("SUM", [x, axes], [y])
    content = file.content([x], [y])
    notes = {engine: " ".join(notes_of(read_model(content, engine)))
             for engine in ("litert", "litert-reference", "tflm")}
    assert "int8 as uint8" in notes["litert-reference"]
    assert "int8 as uint8" not in notes["litert"] + notes["tflm"]
    assert "one level off" in notes["litert"]
    assert "one level off" in notes["tflm"]


def test_a_name_without_end_is_damage():
    file = TfliteFile()
    x, y = file.tensor((1, 4), 1.0, 0, name="x" * 2000), file.tensor((1, 4), 1.0, 0)
    file.operator("RELU", [x], [y])
    with pytest.raises(BadModelError, match="name of tensor 0"):
        read_model(file.content([x], [y]))
