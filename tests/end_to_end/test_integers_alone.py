"""Networks on machines that requantise in whole numbers alone: the same values as on others, down to RTL."""

from dataclasses import replace

import numpy as np
import pytest

from tests.end_to_end.test_integer_requantise import in_integers
from tests.support.execute import execute
from tests.support.litert_results import feeds, kernel_results
from tests.support.machines import MORE_UNITS
from tests.support.matrix_networks import matrix_network
from tests.support.random_layers import fitting_layers
from tests.support.rtl import execute_rtl
from tests.support.side_by_side import side_by_side
from tests.support.tflite_cases import content_of
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.errors import InputError
from tilewright.functions import check
from tilewright.isa.machine import Machine, MemoryTiming, preset
from tilewright.models import FOLDER
from tilewright.runtime.run_options import RunOptions
from tilewright.runtime.session import InferenceSession

RESULTS = kernel_results()
ALONE = replace(MORE_UNITS, name="alone", row_unit=False, wide_words=False, float_requantise=False)
PAIRS = replace(ALONE, name="alone in pairs", array="winograd_inner", lanes=8, channel_kernels=False)
ONE = replace(ALONE, name="one lane alone", array="plain", column_reuse=False, lanes=1, clusters=1, post_lanes=1)


def ran(machine, run, seed=1, count=12):
    """Assert that layers in integers, and layers that leave their sums whole, compute what the reference does."""
    rng = np.random.default_rng(seed)
    layers = [each for each in fitting_layers(rng, machine, count) if each.factor is None]
    network = side_by_side([each if each.whole else in_integers(each, rng) for each in layers])
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    compiled = compile_layers(network, machine, keep_tensors=True)
    found, expected = run(compiled, inputs), run_network(network, inputs)
    for layer in network.layers:
        np.testing.assert_array_equal(found[layer.output], expected[layer.output], err_msg=layer.name)


@pytest.mark.parametrize("machine", [ALONE, PAIRS, ONE], ids=lambda machine: machine.name)
def test_every_array_computes_the_same(machine):
    ran(machine, execute)


@pytest.mark.slow
def test_rtl_under_stalls(tmp_path):
    timing = MemoryTiming(bytes_per_cycle=4, stall_percent=30, seed=5)
    ran(ALONE, lambda compiled, inputs: execute_rtl(compiled, inputs, tmp_path, timing=timing)[0], 2, 10)


@pytest.mark.parametrize("name", ["average_pool_2d", "batch product", "batch product of four axes", "bilinear by 2",
                                  "concatenation", "mean of rows", "mul", "prelu", "residual block", "softmax",
                                  "transposed"])
def test_an_operator_computes_what_tensorflow_lite_micro_does(name):
    """Copies and sums of two tensors keep the scale 1; averages and weighed pixels get whole numbers."""
    content = content_of(name)
    model = read_file(content, "net")
    session = InferenceSession(content, "base_integer", run_options=RunOptions(reference="tflm"))
    found = session.run(None, {model.tensors[index].name: values for index, values in feeds(model).items()})
    for number, each in enumerate(found):
        assert np.array_equal(each, RESULTS[f"tflm/{name}/{number}"])


def test_products_of_computed_matrices_get_whole_numbers():
    """A float32 scale of which no sum is a half, and zero points: the levels are those of such scales."""
    network = matrix_network(60, 9, 20, -7, 11)
    (product,) = network.layers
    network = replace(network, layers=(replace(product, requantisation=replace(
        product.requantisation, scale=np.full(20, 0.0003141, np.float32))),))
    inputs = {info.name: np.random.default_rng(3).integers(-128, 128, info.shape, np.int8) for info in network.inputs}
    compiled = compile_layers(network, preset("base_integer"), keep_tensors=True)
    assert np.array_equal(execute(compiled, inputs)["y"], run_network(network, inputs)["y"])


def of_keywords(engine):
    content = (FOLDER / "mlperf-kws.tflite").read_bytes()
    model = read_file(content, "net")
    named = {model.tensors[index].name: values for index, values in feeds(model).items()}
    options = RunOptions(reference="tflm")
    sessions = [InferenceSession(content, machine, engine=kind, run_options=options)
                for machine, kind in (("base_integer", engine), ("base,integer_requantise=true", "fast"))]
    (found,), (expected,) = (each.run(None, named) for each in sessions)
    assert np.array_equal(found, expected)
    return [each.report.cycles for each in sessions]


def test_keyword_spotting_takes_the_cycles_that_it_takes_beside_float32_scales():
    own, both = of_keywords("fast")
    assert own == both


@pytest.mark.slow
def test_keyword_spotting_in_rtl():
    own, predicted = of_keywords("rtl")
    assert abs(own / predicted - 1) < 0.02


def test_networks_of_float32_scales_are_refused_by_node_with_what_to_do():
    with pytest.raises(UnsupportedNodeError, match=r"base,integer_requantise=true.*tflm"):
        InferenceSession("lenet5", "base_integer")
    found = check("lenet5", "base_integer")
    assert not found.compiles
    content = content_of("residual block")
    assert not check(content, "base_integer").compiles
    assert check(content, "base_integer", reference="tflm").compiles


def test_float32_scales_are_left_out_only_beside_integers_and_without_units_that_scale():
    with pytest.raises(ValueError, match="integer_requantise"):
        Machine(float_requantise=False)
    for unit in ("row_unit", "wide_words"):
        with pytest.raises(ValueError, match=unit):
            replace(preset("base_integer"), **{unit: True})
    with pytest.raises(InputError, match="integer_requantise"):
        InferenceSession("lenet5", "base,float_requantise=false")
