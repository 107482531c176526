"""An average is ONNX Runtime's for every window, where its numbers are called exact, halves between levels too."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.runtime.oracle.onnx_runtime import run_reference

TYPES = {np.int8: TensorProto.INT8, np.uint8: TensorProto.UINT8}
HALVES = [(np.float32(0.0625), np.float32(0.125)), (np.float32(0.25), np.float32(0.25)),
          (np.float32(0.375), np.float32(0.75))]
"""Scales of input and output of which sums and averages are exact in float32, so that halves stay halves."""


def average(dtype, scales, zero_points, *, kernel=(2, 2), size=(16, 16), channels=8, **attrs):
    """Return the bytes of one AveragePool between quantised tensors."""
    constants = {"xs": scales[0], "ys": scales[1], "xz": dtype(zero_points[0]), "yz": dtype(zero_points[1])}
    nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["d"]),
             helper.make_node("AveragePool", ["d"], ["o"], kernel_shape=kernel, **{"strides": kernel} | attrs),
             helper.make_node("QuantizeLinear", ["o", "ys", "yz"], ["y"])]
    graph = helper.make_graph(
        nodes, "average", [helper.make_tensor_value_info("x", TYPES[dtype], (1, channels, *size))],
        [helper.make_tensor_value_info("y", TYPES[dtype], (1, channels, None, None))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


def both(model, x):
    """Return whether the layers of a model are exact, its output here, and ONNX Runtime's as int8."""
    network = compile_network(model)
    info, = network.inputs
    offset = 128 if x.dtype == np.uint8 else 0
    ours = run_network(network, {info.name: (x.astype(np.int16) - offset).astype(np.int8).reshape(info.array_shape)})
    theirs = run_reference(model, {"x": x})["y"].astype(np.int16) - offset
    return all(layer.exact for layer in network.layers), ours[network.outputs[0].name].ravel(), theirs.ravel()


def values(dtype, shape, seed):
    """Return random numbers of a type, the ends of its range among them."""
    rng, ends = np.random.default_rng(seed), np.iinfo(dtype)
    x = rng.integers(ends.min, ends.max + 1, shape).astype(dtype)
    x[..., :2, :2], x[..., -2:, -2:] = ends.min, ends.max
    return x


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scales", HALVES)
@pytest.mark.parametrize("zero_points", [(3, 5), (3, 4), (0, 127), (127, 1), (64, 99)])
@pytest.mark.parametrize("kernel", [(2, 2), (1, 2), (4, 4)])
def test_halves_go_to_the_even_level_behind_the_zero_point(dtype, scales, zero_points, kernel):
    exact, ours, theirs = both(average(dtype, scales, zero_points, kernel=kernel), values(dtype, (1, 8, 16, 16), 1))
    assert exact
    assert np.array_equal(ours, theirs)


def test_windows_at_a_border_are_exact_too():
    model = average(np.int8, HALVES[0], (3, 5), kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1))
    exact, ours, theirs = both(model, values(np.int8, (1, 8, 16, 16), 2))
    assert exact
    assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("dtype", TYPES)
def test_what_is_called_exact_is(dtype):
    rng, called = np.random.default_rng(3), 0
    for _ in range(60):
        scales = rng.uniform(1e-3, 0.1, 2).astype(np.float32)
        if rng.integers(3) == 0:
            scales[1] = scales[0]
        ends, kernel = np.iinfo(dtype), tuple(map(int, rng.choice([(2, 2), (3, 3), (1, 5), (4, 2)])))
        zero_points = rng.integers(ends.min, ends.max + 1, 2)
        model = average(dtype, scales, zero_points, kernel=kernel, channels=16)
        exact, ours, theirs = both(model, values(dtype, (1, 16, 16, 16), int(rng.integers(1 << 30))))
        assert np.abs(ours - theirs).max() <= (0 if exact else 1), (scales, zero_points, kernel)
        called += exact
    assert called > 30
