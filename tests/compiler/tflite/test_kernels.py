"""Networks and operators in the arithmetic of LiteRT's reference kernels and of TensorFlow Lite Micro, to the bit."""

import numpy as np
import pytest

from tests.support.litert_results import KERNELS, feeds, fingerprint, fingerprints, kernel_results
from tests.support.tflite_cases import content_of
from tests.support.tflite_files import TfliteFile
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.layers import CoreLayer, Layer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.split_units import split_units
from tilewright.compiler.tflite.adder import fitted_addends
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.graph_builder import LevelNumbers
from tilewright.compiler.tflite.numbers import kernel_numbers
from tilewright.compiler.tflite.numbers.litert_numbers import fixed_point
from tilewright.compiler.tflite.numbers.one_sided import one_sided
from tilewright.errors import InputError
from tilewright.functions import check, compare, compile
from tilewright.isa.integers.gemmlowp import once_rounded, twice_rounded
from tilewright.isa.machine import preset
from tilewright.models import FOLDER, PUBLISHED
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.runtime.run_options import RunOptions
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

RESULTS = kernel_results()
TAKEN = sorted({tuple(key.split("/")[:2]) for key in RESULTS.files})

NEAR = ("float border", "floats joined", "rsqrt", "squared difference", "unit length")
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


IN_INTEGERS = ("bilinear by 2", "bilinear by 3", "dense of many", "mean of all", "mean of rows", "mul",
               "mul by channels", "prelu", "residual block", "softmax", "transposed")


@pytest.mark.parametrize("engine", KERNELS)
@pytest.mark.parametrize("name", IN_INTEGERS)
def test_onnx_runtime_computes_the_same_of_the_model_that_is_read(engine, name):
    content = content_of(name)
    proto = read_model(content, engine)
    model = read_file(content, "net")
    given = {model.tensors[index].name: values for index, values in feeds(model).items()}
    found = onnx_session(proto.SerializeToString()).run(None, given)
    assert np.array_equal(found[0], RESULTS[f"{engine}/{name}/0"])


@pytest.mark.parametrize("name", IN_INTEGERS)
def test_the_core_computes_only_softmax_and_what_the_datapath_has_no_numbers_for(name):
    network = compile_network(read_model(content_of(name), "tflm").SerializeToString())
    core = [layer for layer in network.layers if isinstance(layer, CoreLayer)]
    if name == "softmax":
        assert [layer.op for layer in core] == ["SoftmaxInIntegers"]
    else:
        assert bool(core) == (name in ("bilinear by 3", "mean of all"))


@pytest.mark.parametrize("name", ["mul", "softmax", "prelu"])
def test_a_session_computes_what_an_engine_does(name):
    """Of computed tensors, parameters are written while the program runs."""
    content = content_of(name)
    model = read_file(content, "net")
    session = InferenceSession(content, "nano,integer_requantise=true", run_options=RunOptions(reference="tflm"))
    found, = session.run(None, {model.tensors[index].name: values for index, values in feeds(model).items()})
    assert np.array_equal(found, RESULTS[f"tflm/{name}/0"])


def test_references_of_a_session_are_those_of_tflite_files():
    with pytest.raises(InputError, match="lenet5"):
        InferenceSession("lenet5", run_options=RunOptions(reference="tflm"))
    with pytest.raises(InputError, match="'cmsis'"):
        InferenceSession(content_of("softmax"), run_options=RunOptions(reference="cmsis"))


def test_a_reference_goes_with_the_functions(tmp_path):
    content, machine = content_of("transposed"), "nano,integer_requantise=true"
    assert check(content, machine, reference="tflm").compiles
    assert not check(content, "nano", reference="tflm").compiles
    with pytest.raises(UnsupportedNodeError, match="integer_requantise=true"):
        compile(content, tmp_path, "nano", reference="litert-reference")
    assert compare(content, machine, reference="litert-reference").matches


@pytest.mark.parametrize("count", [9, 23, 87, 196])
@pytest.mark.parametrize("zero", [-128, -77, 3])
def test_sums_of_one_sign_are_rounded_once_as_twice(count, zero):
    """Of 30 bits, whose first rounding adds more than a sum."""
    multiplier, shift = fixed_point(0.53 if count < 100 else 0.9)
    cut = count.bit_length() - 1
    divided, down = (multiplier << cut) // count, 31 - shift + cut
    for end in (count * (127 - zero), count * (-128 - zero)):
        found = one_sided(end, divided, down) if end else None
        if found is None:
            continue
        weight, bias, factor = found
        fraction, exponent = np.frexp(factor)
        for total in range(0, end, 1 if end > 0 else -1):
            wanted = twice_rounded(total, divided, 31 - down)
            made = once_rounded(weight * total + bias, int(fraction * (1 << 31)), int(exponent))
            assert abs(wanted) >= 256 or made == wanted
        assert end or zero == -128


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


@pytest.mark.parametrize(("scale", "own", "level"), [(0.09, 3.0228099822998047, 60), (0.31, 10.411900520324707, 61)])
def test_a_dense_layer_multiplies_its_scales_in_float64(scale, own, level):
    """LiteRT's reference kernels 2.3 give these levels, next to a half; a product in float32 gives the other."""
    file = TfliteFile()
    x, weights = file.tensor((1, 16), scale, 0), file.constant(np.full((1, 16), 127, np.int8), np.float32(0.01))
    y = file.tensor((1, 1), own, 0)
    file.operator("FULLY_CONNECTED", [x, weights, -1], [y])
    network = compile_network(read_model(file.content([x], [y]), "litert-reference").SerializeToString())
    (given,), (info,) = network.inputs, network.outputs
    computed = run_network(network, {given.name: quantise_input(given, np.full((1, 16), 100, np.int8))})
    assert dequantise_output(info, computed[info.name]).tolist() == [[level]]
