"""Squeeze and excitation for random graphs: an image times a vector of its channels, in every form and quantisation."""

import numpy as np

from tests.fuzz.broadcasts import broadcast
from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["excited"]


def excited(model: ModelBuilder, choices: Choices, x: Value) -> Value:
    """Return ``x`` times a convolution of its averages, opened by a sigmoid or as it is; operands in either order."""
    if choices.chance(50):
        return broadcast(model, choices, x)
    factor = model.conv(model.average(x), x.shape[1], kernel=1)
    if choices.chance(60):
        opened = model.value(factor.shape, np.float32(1 / 255), choices.pick((None, np.iinfo(model.dtype).min)))
        if model.form == "qoperator":
            model.node("QLinearSigmoid", [factor.name, *model.parameters(factor), *model.parameters(opened)],
                       opened.name, "com.microsoft")
        else:
            op = choices.pick(("Sigmoid", "HardSigmoid"))
            model.quantised(model.node(op, [model.dequantised(factor)], f"float{len(model.nodes)}"), opened)
        factor = opened
    out = model.value(x.shape, np.float32(x.scale * choices.pick((0.7, 0.3))))
    operands = (x, factor) if choices.chance(70) else (factor, x)
    if model.form == "qoperator":
        names = [name for value in operands for name in (value.name, *model.parameters(value))]
        model.node("QLinearMul", [*names, *model.parameters(out)], out.name, "com.microsoft")
    else:
        model.quantised(model.node("Mul", [model.dequantised(each) for each in operands],
                                   f"float{len(model.nodes)}"), out)
    return out
