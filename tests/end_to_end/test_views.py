"""Layers between views of tensors that the host core writes: box decoding behind a convolution."""

import numpy as np
import pytest

from tests.fuzz.oracle import judge
from tests.support.onnx_models import ModelBuilder, Value


def table(model: ModelBuilder, op: str, x: Value, scale: float, *constants: np.ndarray) -> Value:
    """Add an operator on every element, with constants, whose result has a scale of its own."""
    out = model.value(x.shape, np.float32(scale))
    names = [model.dequantised(x), *(model.constant(each) for each in constants)]
    model.quantised(model.node(op, names, f"float{len(model.nodes)}"), out)
    return out


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("behind", ["nothing", "layer", "convolution"])
def test_layers_between_what_the_core_computes_read_views_of_it(dtype, behind):
    model = ModelBuilder("qdq", seed=3, dtype=dtype, zero_point=None)
    x = model.conv(model.input((1, 3, 6, 8)), 8)
    x = model.moved("Transpose", x, (1, 4, 6, 8), perm=(0, 2, 3, 1))
    x = model.reshape(x, (1, 48, 4))
    anchors = model.rng.uniform(0.5, 2, (1, 48, 4)).astype(np.float32)
    x = table(model, "Mul", x, 0.02, anchors)
    x = table(model, "Exp", table(model, "Mul", x, 0.02, np.float32(0.2)), 0.01)
    if behind != "nothing":
        x = table(model, "Mul", x, 0.03, anchors)
    if behind == "layer":
        x = table(model, "Sigmoid", x, 1 / 256)
    elif behind == "convolution":
        x = model.conv(model.reshape(x, (1, 12, 4, 4)), 5, kernel=1)
    verdict, _ = judge(model.finish(x))
    assert verdict.mismatches == []
    assert verdict.exact > 0
    assert not verdict.refused
