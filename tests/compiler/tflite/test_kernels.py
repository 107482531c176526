"""Networks and operators in the arithmetic of LiteRT's reference kernels and of TensorFlow Lite Micro, to the bit."""

import numpy as np
import pytest

from tests.support.litert_results import KERNELS, feeds, fingerprint, fingerprints, kernel_results
from tests.support.tflite_cases import content_of
from tests.support.tflite_files import TfliteFile
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.split_units import split_units
from tilewright.compiler.tflite.adder import fitted_addends
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.graph_builder import LevelNumbers
from tilewright.compiler.tflite.numbers import kernel_numbers
from tilewright.errors import InputError
from tilewright.isa.machine import preset
from tilewright.models import FOLDER, PUBLISHED
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.tools.progress import Silence

RESULTS = kernel_results()
TAKEN = sorted({tuple(key.split("/")[:2]) for key in RESULTS.files})

NEAR = ("batch product", "bilinear", "elu", "exp", "float border", "mean", "mul", "prelu", "rsqrt", "softmax",
        "squared difference", "transposed", "uint8")
"""Cases that may have a note that names what is one level off."""


def _in_arithmetic(content, engine, seed=0):
    """Return the file, the network, and what it computes of seeded inputs, by tensor of the network."""
    model = read_file(content, "net")
    network = compile_network(read_model(content, engine).SerializeToString())
    named = {model.tensors[index].name: values for index, values in feeds(model, seed).items()}
    return model, network, run_network(network, {
        info.name: quantise_input(info, named[node_arg(info).name]) for info in network.inputs})


@pytest.mark.parametrize(("engine", "name"), TAKEN)
def test_an_operator_computes_what_the_engine_does(engine, name):
    content = content_of(name)
    noted = any("one level off" in note for note in notes_of(read_model(content, engine)))
    model, network, computed = _in_arithmetic(content, engine)
    found = {node_arg(info).name: dequantise_output(info, computed[info.name]) for info in network.outputs}
    for number, index in enumerate(model.outputs):
        theirs = RESULTS[f"{engine}/{name}/{number}"].astype(np.float64)
        ours = np.asarray(found[model.tensors[index].name]).reshape(theirs.shape).astype(np.float64)
        assert np.abs(ours - theirs).max() <= noted
    assert not noted or name.startswith(NEAR)


@pytest.mark.parametrize("engine", KERNELS)
@pytest.mark.parametrize("name", PUBLISHED)
def test_every_tensor_of_a_network_is_the_engine_s(engine, name):
    model, network, computed = _in_arithmetic((FOLDER / f"{name}.tflite").read_bytes(), engine)
    theirs, compared = fingerprints(engine)[name], 0
    outputs = {model.tensors[index].name for index in model.outputs}
    for tensor in computed.keys() & theirs.keys() - outputs:
        ours = computed[tensor]
        assert fingerprint(np.moveaxis(ours, -3, -1) if ours.ndim > 2 else ours) == theirs[tensor], tensor
        compared += 1
    assert compared >= len(model.operators) - 6
    integers = [layer.requantisation.integers for layer in network.layers
                if isinstance(layer, Layer) and layer.weights is not None]
    assert integers
    assert all(each is not None for each in integers)


def test_the_engines_differ_from_one_another():
    """The reference kernels round dense layers once: anomaly detection has no others."""
    found = {engine: fingerprints(engine) for engine in ("litert", *KERNELS)}
    assert all(found["litert"][name] != found["tflm"][name] for name in PUBLISHED)
    assert found["litert-reference"]["mlperf-ad"] != found["tflm"]["mlperf-ad"]


def test_a_machine_without_long_multipliers_refuses_and_says_what_to_do():
    network = compile_network(read_model(content_of("residual block"), "tflm").SerializeToString())
    with pytest.raises(UnsupportedNodeError, match="integer_requantise=true"):
        split_units(network, preset("base"))


@pytest.mark.parametrize("engine", KERNELS)
def test_onnx_runtime_computes_the_same_of_the_model_that_is_read(engine):
    content = content_of("residual block")
    proto = read_model(content, engine)
    model = read_file(content, "net")
    given = {model.tensors[index].name: values for index, values in feeds(model).items()}
    found = onnx_session(proto.SerializeToString()).run(None, given)
    assert np.array_equal(found[0], RESULTS[f"{engine}/residual block/0"])


def test_what_is_no_tflite_file_has_no_engine():
    with pytest.raises(InputError, match=r"tflm.*lenet5"):
        find_model("lenet5", Silence(), engine="tflm")


def test_a_channel_that_has_died_keeps_its_level():
    """Its bias has 31 bits, and its scale is next to nothing, as in MLPerf's visual wake words."""
    file = TfliteFile()
    x = file.tensor((1, 4, 4, 2), 0.03, -128)
    scales = np.array([0.01, 1e-11, 1e-9, 3e-10], np.float32)
    levels = np.random.default_rng(0).integers(-127, 128, (4, 1, 1, 2)).astype(np.int8)
    levels[1:] = 0
    weights = file.constant(levels, scales)
    bias = file.constant(np.array([70, 1 << 30, -(1 << 30), 1 << 30], np.int32), scales * np.float32(0.03))
    y = file.tensor((1, 4, 4, 4), 0.02, 3)
    file.operator("CONV_2D", [x, weights, bias], [y], Padding=1, StrideW=1, StrideH=1, DilationWFactor=1,
                  DilationHFactor=1, FusedActivationFunction=0)
    content = file.content([x], [y])
    _, network, computed = _in_arithmetic(content, "tflm")
    (info,) = network.outputs
    found = np.asarray(dequantise_output(info, computed[info.name]))
    # 2**30 · 0.03 · 1e-11 / 0.02 is 0.016 of a level, and -2**30 · 0.03 · 1e-9 / 0.02 is -1.61 of one.
    assert [sorted(set(found[..., channel].ravel().tolist())) for channel in (1, 2, 3)] == [[3], [1], [3]]
    assert len(set(found[..., 0].ravel().tolist())) > 2


@pytest.mark.parametrize("seed", range(4))
def test_scales_of_the_adder_give_the_kernels_sums(seed):
    rng = np.random.default_rng(seed)
    scales = np.exp(rng.uniform(-4, -2, 3)).astype(np.float32)
    a, b, y = (LevelNumbers(scale, int(zero)) for scale, zero in zip(scales, rng.integers(-128, 128, 3), strict=True))
    *_, wrong = fitted_addends(a, b, y, "tflm")
    assert wrong == 0


def test_sums_of_the_kernels_are_next_to_the_real_ones():
    scales, zeros = (np.float32(0.05), np.float32(0.02), np.float32(0.07)), (3, -5, 10)
    levels = np.arange(-128, 128)
    real = ((levels[:, None] - 3) * 0.05 + (levels[None] + 5) * 0.02) / 0.07 + 10
    assert np.abs(kernel_numbers.sum_of_levels(scales, zeros) - real).max() < 0.502
    real = ((levels[:, None] - 3) * 0.05 - (levels[None] + 5) * 0.02) / 0.07 + 10
    assert np.abs(kernel_numbers.sum_of_levels(scales, zeros, -1) - real).max() < 0.502
