"""Normalisations as exporters take them apart, in the graph that a builder of models makes."""

from collections.abc import Callable, Sequence

import numpy as np

from tests.support.onnx_models import ModelBuilder

__all__ = ["FORMS", "taken_apart"]

FORMS = ("power", "product", "twice", "half power", "reciprocal", "quotient of one", "inner gain", "tensorflow", "flax",
         "litert")
"""Torch before opset 17, of var_mean, with a difference of its own, by powers, Keras and others; and those named."""


def taken_apart(model: ModelBuilder, x: str, axes: Sequence[int], form: str, gain: np.ndarray | None,
                shift: np.ndarray | None, epsilon: float = 0.01,
                rounded: Callable[[str], str] = lambda name: name) -> str:
    """Add a normalisation of a float tensor along ``axes`` in one of :data:`FORMS`; return the result's name.

    ``rounded`` quantises a float tensor and dequantises it again: the variance, and its sum with ``epsilon``.
    """

    def node(op: str, *inputs: str, **attributes: object) -> str:
        return model.node(op, list(inputs), f"apart{len(model.nodes)}", **attributes)

    def number(value: float) -> str:
        return model.constant(np.float32(value))

    mean = node("ReduceMean", x, axes=list(axes))
    less = node("Sub", x, mean)
    padded = rounded(node("Add", rounded(_variance(model, node, x, mean, less, axes, form)), number(epsilon)))
    deviation = node("Pow", padded, number(0.5)) if form == "half power" else node("Sqrt", padded)
    gains = [] if gain is None else [model.constant(gain.astype(np.float32))]
    shifts = [] if shift is None else [model.constant(shift.astype(np.float32))]
    if form == "tensorflow":
        by = node("Reciprocal", deviation)
        by = node("Mul", by, *gains) if gains else by
        product, moved = node("Mul", x, by), node("Mul", mean, by)
        return node("Add", product, node("Sub", *shifts, moved)) if shifts else node("Sub", product, moved)
    if form == "litert":
        by = node("Reciprocal", deviation)
        y = node("Add", node("Mul", x, by), node("Mul", node("Neg", mean), by))
    elif form in ("reciprocal", "inner gain"):
        by = node("Reciprocal", deviation)
        if form == "inner gain" and gains:
            by = node("Mul", by, gains.pop())
        y = node("Mul", less, by)
    elif form == "quotient of one":
        y = node("Mul", node("Div", number(1), deviation), less)
    else:
        y = node("Div", less, deviation)
    y = node("Mul", y, *gains) if gains else y
    return node("Add", y, *shifts) if shifts else y


def _variance(model: ModelBuilder, node: Callable[..., str], x: str, mean: str, less: str, axes: Sequence[int],
              form: str) -> str:
    if form == "flax":
        return node("Sub", node("ReduceMean", node("Mul", x, x), axes=list(axes)), node("Mul", mean, mean))
    if form in ("twice", "tensorflow", "litert"):
        less = node("Sub", x, mean)
    square = node("Mul", less, less) if form in ("product", "tensorflow") else \
        node("Pow", less, model.constant(np.float32(2)))
    return node("ReduceMean", square, axes=list(axes))
