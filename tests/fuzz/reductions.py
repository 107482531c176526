"""Averages and maxima along axes for random graphs: of images, and of the rows that images are in another shape."""

import math

import numpy as np

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["random_reduction"]

_OPERATORS = ("ReduceMean", "ReduceMax", "ReduceMean")


def random_reduction(choices: Choices, model: ModelBuilder, x: Value) -> Value:
    """Return ``x`` reduced along axes that stay with one element, or of three dimensions along one that goes."""
    op = choices.pick(_OPERATORS)
    if choices.chance(30):
        return _of_rows(choices, model, x, op)
    axes = choices.pick(((2, 3), (1,), (3,), (2,)))
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    source = model.dequantised(x)
    if op == "ReduceMean" and len(axes) == 2 and choices.chance(30):
        source, axes = model.node(op, [source], f"float{len(model.nodes)}", axes=axes[:1], keepdims=1), axes[1:]
    return _quantised(choices, model, model.node(op, [source], f"float{len(model.nodes)}", axes=axes, keepdims=1), x,
                      shape)


def _of_rows(choices: Choices, model: ModelBuilder, x: Value, op: str) -> Value:
    """Return one value for each channel, or for each pixel, of (1, channels, pixels)."""
    pixels = math.prod(x.shape[2:])
    rows = model.reshape(x, (1, x.shape[1], pixels))
    axis = choices.pick((2, 1))
    result = model.node(op, [model.dequantised(rows)], f"float{len(model.nodes)}", axes=[axis], keepdims=0)
    return _quantised(choices, model, result, x, (1, x.shape[1] if axis == 2 else pixels))


def _quantised(choices: Choices, model: ModelBuilder, name: str, x: Value, shape: tuple[int, ...]) -> Value:
    out = model.value(shape, np.float32(x.scale * choices.pick((0.6, 1.0))))
    model.quantised(name, out)
    return out
