"""Products of two computed matrices for random graphs: attention as exporters write it, of any heads and order."""

import numpy as np

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["attended"]

_MOST_PIXELS = 40


def attended(choices: Choices, model: ModelBuilder, x: Value) -> Value:
    """Return what the pixels of the image ``x`` are worth to one another, times another convolution of ``x``."""
    if x.shape[2] * x.shape[3] > _MOST_PIXELS:
        size = [min(extent, 6) for extent in x.shape[2:]]
        bounds = [model.constant(np.array(each)) for each in ([0, 0], size, [2, 3])]
        x = model.moved("Slice", x, (*x.shape[:2], *size), tuple(bounds))
    heads, each = choices.pick((1, 2, 3)), choices.pick((4, 3, 8, 17, 1))
    left, right = _matrices(choices, model, x, heads, each), _matrices(choices, model, x, heads, each)
    scores = _product(choices, model, _turned(model, left), right)
    if choices.chance(30) and model.form != "qoperator":
        weights = model.value(scores.shape, np.float32(1 / 256), int(np.iinfo(model.dtype).min))
        made = model.node("Softmax", [model.dequantised(scores)], f"float{len(model.nodes)}", axis=-1)
        model.quantised(made, weights)
        scores = weights
    values = _matrices(choices, model, x, heads, choices.pick((5, 8, 2)))
    if len(values.shape) != len(scores.shape):
        values = model.reshape(values, (*scores.shape[:-2], *values.shape[-2:]))
    if choices.chance(50):
        result = _product(choices, model, values, _turned(model, scores))
    else:
        result = _turned(model, _product(choices, model, scores, _turned(model, values)))
    return model.reshape(result, (1, heads * result.shape[-2], *x.shape[2:]))


def _matrices(choices: Choices, model: ModelBuilder, x: Value, heads: int, each: int) -> Value:
    """Return a matrix (each, pixels) for each head, of a convolution of ``x``; at times as channels of one head."""
    image = model.conv(x, heads * each, kernel=1)
    pixels = x.shape[2] * x.shape[3]
    if choices.chance(30):
        apart = model.reshape(image, (1, each, heads, pixels))
        return model.moved("Transpose", apart, (1, heads, each, pixels), perm=(0, 2, 1, 3))
    return model.reshape(image, (1, heads, each, pixels))


def _turned(model: ModelBuilder, x: Value) -> Value:
    rank = len(x.shape)
    perm = (*range(rank - 2), rank - 1, rank - 2)
    return model.moved("Transpose", x, tuple(x.shape[axis] for axis in perm), perm=perm)


def _product(choices: Choices, model: ModelBuilder, a: Value, b: Value) -> Value:
    """Return a times b, at times of stacks of one dimension less."""
    if choices.chance(20) and len(a.shape) == 4:
        a, b = (model.reshape(value, value.shape[1:]) for value in (a, b))
    shape = (*a.shape[:-1], b.shape[-1])
    terms = np.sqrt(a.shape[-1]) * choices.pick((74, 40, 150))
    out = model.value(shape, np.float32(np.clip(float(a.scale) * float(b.scale) * terms, 1e-3, 10)))
    if model.form == "qoperator":
        names = [name for value in (a, b) for name in (value.name, *model.parameters(value))]
        model.node("QLinearMatMul", [*names, *model.parameters(out)], out.name)
    else:
        model.quantised(model.node("MatMul", [model.dequantised(each) for each in (a, b)], f"float{len(model.nodes)}"),
                        out)
    return out
