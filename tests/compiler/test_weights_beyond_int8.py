"""uint8 weights of which some leave int8: one layer, which adds what is beyond, on any machine, to the bit."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.exactness import assert_layers, random_inputs
from tests.support.execute import execute
from tests.support.machines import MACHINES, TINY
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.reference import run_network
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report
from tilewright.runtime.oracle.conversion import quantise_input


def conv(model, x, outputs, wide, kernel=1, groups=1, stride=1, zero=111):
    """Add a convolution with uint8 weights of a zero point; those of input channels ``wide`` reach 255 less that."""
    channels = x.shape[1]
    levels = model.rng.integers(max(zero - 110, 0), min(zero + 110, 239), (outputs, channels // groups, kernel, kernel))
    for channel in wide:
        levels[channel % outputs, channel % (channels // groups), -1, 0] = 255
    constants = [model.constant(each) for each in (levels.astype(np.uint8), np.float32(0.006), np.uint8(zero))]
    real = model.node("DequantizeLinear", constants, f"weights{len(model.nodes)}")
    pad = kernel // 2
    product = model.node("Conv", [model.dequantised(x), real], f"product{len(model.nodes)}", group=groups,
                         pads=(pad,) * 4, strides=(stride, stride), kernel_shape=(kernel, kernel))
    height, width = ((size - 1) // stride + 1 for size in x.shape[2:])
    out = model.value((1, outputs, height, width), np.float32(x.scale * 0.006 * kernel * np.sqrt(channels) * 2))
    model.quantised(product, out)
    return out


def network_of(seed, shape, *layers):
    model = ModelBuilder("qdq", seed=seed, dtype=np.uint8, zero_point=None)
    x = model.input((1, *shape))
    for each in layers:
        x = conv(model, x, **each)
    return assert_layers(model.finish(x))


CASES = {
    "a pixel is a run": ((10, 6, 7), {"outputs": 5, "wide": (4, 7)}),
    "3x3": ((16, 9, 7), {"outputs": 20, "wide": (4, 15), "kernel": 3}),
    "a stride": ((3, 11, 8), {"outputs": 9, "wide": (1,), "kernel": 3, "stride": 2}),
    "depthwise": ((24, 8, 9), {"outputs": 24, "wide": (5, 17), "kernel": 3, "groups": 24}),
    "depthwise, a stride": ((24, 8, 9), {"outputs": 24, "wide": (9,), "kernel": 3, "groups": 24, "stride": 2}),
    "groups": ((32, 6, 5), {"outputs": 64, "wide": (3, 40), "kernel": 3, "groups": 2}),
    "up to 255": ((18, 5, 6), {"outputs": 17, "wide": (2, 11), "kernel": 3, "zero": 0}),
    "all channels": ((9, 6, 6), {"outputs": 8, "wide": range(9)}),
    "a vector": ((200, 1, 1), {"outputs": 30, "wide": (3, 190)}),
}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=str)
@pytest.mark.parametrize("case", CASES)
def test_the_program_computes_the_sums(case, machine):
    network = network_of(3, *CASES[case])
    inputs = random_inputs(network, np.random.default_rng(1))
    given = {info.name: quantise_input(info, inputs[info.onnx_name]) for info in network.inputs}
    found = execute(compile_layers(network, machine, keep_tensors=True), given)
    expected = run_network(network, given)
    assert len([layer for layer in network.layers if layer.weights.dtype == np.int16]) == 1
    for layer in network.layers:
        assert np.array_equal(found[layer.output], expected[layer.output])


def test_who_else_reads_its_input_and_a_sum_behind_it():
    model = ModelBuilder("qdq", seed=2, dtype=np.uint8, zero_point=None)
    x = conv(model, model.input((1, 3, 6, 7)), 10, ())
    network = assert_layers(model.finish(model.add(conv(model, x, 10, (4,), 3), x)))
    assert [layer.in_shape[0] for layer in network.layers] == [3, 10]


def cycles(network, machine="base"):
    return predict_report(job_of_compiled(compile_layers(network, MACHINES[machine], keep_tensors=True), "test")).cycles


@pytest.mark.parametrize(("case", "most"), [("a pixel is a run", 1.7), ("3x3", 1.6), ("depthwise", 2.1)])
def test_few_weights_beyond_cost_little(case, most):
    shape, layer = CASES[case]
    shape = (shape[0], 24, 24)
    assert cycles(network_of(3, shape, layer)) <= most * cycles(network_of(3, shape, {**layer, "wide": ()}))


@pytest.mark.parametrize("kernel", [2, 3])
def test_max_pooling_behind_it(kernel):
    model = ModelBuilder("qdq", seed=5, dtype=np.uint8, zero_point=None)
    x = conv(model, model.input((1, 8, 9, 11)), 12, (3,), 3)
    network = assert_layers(model.finish(model.max_pool(x, kernel, strides=[2, 2])))
    given = {info.name: quantise_input(info, random_inputs(network, np.random.default_rng(1))[info.onnx_name])
             for info in network.inputs}
    for machine in (*MACHINES.values(), TINY, *(replace(TINY, clusters=TINY.lanes, tiles=tiles) for tiles in (1, 2))):
        found = execute(compile_layers(network, machine), given)
        output = network.outputs[0].name
        assert np.array_equal(found[output], run_network(network, given)[output])
