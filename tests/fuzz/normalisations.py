"""Normalisations for random graphs: by constants, by a row's own mean and variance, whole or taken apart, by slopes."""

import numpy as np

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value
from tests.support.taken_apart import FORMS, taken_apart

__all__ = ["apart", "random_normalisation"]

_OPERATORS = ("BatchNormalization", "InstanceNormalization", "LRN", "PRelu", "LayerNormalization", "PRelu")


def random_normalisation(choices: Choices, model: ModelBuilder, x: Value) -> Value:
    """Return ``x`` through one of them, perhaps with a Relu behind it."""
    if choices.chance(25):
        return apart(choices, model, x)
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


def apart(choices: Choices, model: ModelBuilder, x: Value) -> Value:
    """Return ``x`` through a normalisation along any axes that is taken apart in any form."""
    axes = choices.pick(((1,), (3,), (2, 3), (1, 2, 3), (2,), (1, 3)))
    vectors = [model.rng.uniform(*bounds, [n if axis in axes else 1 for axis, n in enumerate(x.shape)])
               if choices.chance(70) else None for bounds in ((0.5, 1.5), (-1, 1))]
    form = choices.pick(FORMS)
    out = model.value(x.shape, np.float32(1 / 40))
    few = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    step = np.float32((74 * x.scale)**2 / choices.pick((100, 40)))

    def rounded(name: str) -> str:
        level = model.value(few, step, int(np.iinfo(model.dtype).min))
        model.quantised(name, level)
        return model.dequantised(level)

    result = taken_apart(model, model.dequantised(x), axes, form, *vectors, epsilon=choices.pick((0.01, 0.1, 1.0)),
                         **({"rounded": rounded} if choices.chance(30) else {}))
    model.quantised(result, out)
    return out
