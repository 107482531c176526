"""Averages whose padding does not count, dilated too: each window divides by the pixels that it has in the image."""

import onnx
import pytest

from tests.compiler.normal.graphs import model, node, scalar, zero
from tilewright.compiler.errors import BadModelError
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource


def average(**window):
    constants = {"s": scalar(.05), "z": zero(3)}
    return model([node("QuantizeLinear", ["x", "s", "z"], "q"), node("DequantizeLinear", ["q", "s", "z"], "d"),
                  node("AveragePool", ["d"], "a", **window),
                  node("QuantizeLinear", ["a", "s", "z"], "aq"), node("DequantizeLinear", ["aq", "s", "z"], "y")],
                 constants, opset=19)


@pytest.mark.parametrize("window", [
    {"kernel_shape": [2, 2], "dilations": [2, 3], "pads": [1, 1, 1, 1]},
    {"kernel_shape": [3, 3], "dilations": [1, 2], "pads": [2, 2, 1, 2], "strides": [2, 1]},
    {"kernel_shape": [1, 3], "dilations": [3, 2], "pads": [0, 2, 0, 1]},
    {"kernel_shape": [3, 2], "dilations": [2, 1], "pads": [1, 1, 0, 0], "strides": [1, 2]},
])
def test_a_dilated_average_counts_the_pixels_of_its_window_that_lie_in_the_image(tmp_path, window):
    onnx.save(average(**window), tmp_path / "net.onnx")
    run = run_model(ModelSource.of(tmp_path / "net.onnx"), PRESETS["base"], "fast", None)
    assert run.comparison.matches
    assert run.comparison.levels <= 1    # as declared: ONNX Runtime divides in float
    assert {layer.algorithm for layer in run.report.layers} == {"pool"}


def test_a_window_that_lies_in_the_padding_alone_is_refused():
    window = {"kernel_shape": [1, 2], "dilations": [1, 20], "pads": [0, 19, 0, 19]}
    with pytest.raises(BadModelError, match="padding"):
        compile_network(average(**window).SerializeToString())
