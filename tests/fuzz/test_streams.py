"""Random stacks of convolutions over time are, call by call, what they are of a whole window."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.compiler.stream.test_streaming import calls_of, near, window_of
from tilewright.compiler.stream.streaming import streamed
from tilewright.errors import InputError


def random_stack(rng: np.random.Generator) -> onnx.ModelProto:
    """Return one to three convolutions of (1, 3, frames) or (1, 3, frames, 1), causal or without padding."""
    rest, causal, frames = ([], [1])[int(rng.random() < 0.5)], rng.random() < 0.5, int(rng.integers(8, 25))
    nodes, constants, name, channels, length = [], [], "x", 3, frames
    for index in range(int(rng.integers(1, 4))):
        taps, stride, dilation = int(rng.integers(1, 5)), int(rng.choice([1, 1, 1, 2, 3])), int(rng.choice([1, 1, 2]))
        reach, filters = (taps - 1) * dilation + 1, int(rng.integers(2, 5))
        before = int(rng.integers(max(reach - stride, 0), reach)) if causal else 0
        if length + before < reach:
            break
        for label, shape in ((f"w{index}", (filters, channels, taps, *rest)), (f"b{index}", (filters,))):
            constants.append(numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), label))
        zeros = [0] * len(rest)
        nodes.append(helper.make_node(
            "Conv", [name, f"w{index}", f"b{index}"], [f"c{index}"], f"c{index}", pads=[before, *zeros, 0, *zeros],
            strides=[stride, *rest], dilations=[dilation, *rest]))
        nodes.append(helper.make_node("Sigmoid", [f"c{index}"], [name := f"s{index}"], name))
        length, channels = (length + before - reach) // stride + 1, filters
    nodes.append(helper.make_node("Flatten" if rng.random() < 0.5 else "Identity", [name], ["y"], "last"))
    ends = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
            for name, shape in (("x", [1, 3, frames, *rest]), ("y", None)))
    return helper.make_model(helper.make_graph(nodes, "net", *ends, constants),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("seed", range(40))
def test_calls_are_the_window(seed):
    rng = np.random.default_rng(seed)
    model = random_stack(rng)
    try:
        stream = streamed(model, 2)
    except InputError:
        return
    shape = [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim]
    frames = rng.normal(size=[*shape[:2], stream.calls * stream.frames + shape[2], *shape[3:]]).astype(np.float32)
    found, expected = calls_of(stream, frames, stream.calls), window_of(model, frames[:, :, :shape[2]])
    if "y" in stream.ends:
        axis, end = stream.ends["y"]
        found = [np.concatenate(found, axis)[:, :, end - expected.shape[axis]:end]]
    near(found[-1], expected)
