"""Normalisations for random graphs: by constants, by a row's own mean and variance, by slopes below zero."""

import numpy as np

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["random_normalisation"]

_OPERATORS = ("BatchNormalization", "InstanceNormalization", "LRN", "PRelu", "LayerNormalization", "PRelu")


def random_normalisation(choices: Choices, model: ModelBuilder, x: Value) -> Value:
    """Return ``x`` through one of them, perhaps with a Relu behind it."""
    channels = x.shape[1]
    op = choices.pick(_OPERATORS)
    count = x.shape[-1] if op == "LayerNormalization" else channels
    drawn = [model.rng.uniform(0.5, 1.5, count).astype(np.float32) for _ in range(4)]
    extra: list[str] = []
    # A row of one value has no variance: then rounding errors over the root of epsilon are the result.
    attrs: dict[str, object] = {"epsilon": 0.01} if op in ("InstanceNormalization", "LayerNormalization") else {}
    if op == "PRelu":
        slope = drawn[0].reshape(channels, 1, 1) * choices.pick((1, 0.2, -0.5))
        extra = [model.constant(slope.astype(np.float32))]
    elif op == "LRN":
        attrs = {"size": choices.pick((3, 5)), "alpha": 0.01}
    else:
        extra = list(map(model.constant, drawn[:4 if op == "BatchNormalization" else 2]))
    out = model.value(x.shape, np.float32(1 / 40))
    result = model.node(op, [model.dequantised(x), *extra], f"float{len(model.nodes)}", **attrs)
    if choices.chance(20):
        result = model.node("Relu", [result], f"float{len(model.nodes)}")
    model.quantised(result, out)
    return out
