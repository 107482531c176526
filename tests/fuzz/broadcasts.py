"""Products, sums and differences of two computed tensors for random graphs, of which one may be broadcast."""

import numpy as np

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["broadcast"]


def broadcast(model: ModelBuilder, choices: Choices, x: Value) -> Value:
    """Return ``x``, an image, times, plus or minus a map, rows, columns, a vector, one value or an image of itself."""
    kept = choices.pick(((1, 2, 3), (2, 3), (1, 2), (1, 3), (1,), (2,), (3,), ()))
    other = model.conv(x, x.shape[1] if 1 in kept else 1, kernel=1)
    gone = [axis for axis in (2, 3) if axis not in kept and x.shape[axis] > 1]
    if gone:
        shape = tuple(1 if axis in gone else extent for axis, extent in enumerate(other.shape))
        bounds = [model.constant(np.array([each] * len(gone))) for each in (0, 1)]
        other = model.moved("Slice", other, shape, (*bounds, model.constant(np.array(gone))))
    if choices.chance(30):
        other = model.reshape(other, other.shape[1:])
    op = choices.pick(("Mul", "Mul", "Add", "Sub"))
    if model.form == "qoperator" and op == "Sub":
        op = "Add"
    out = model.value(x.shape, np.float32(x.scale * choices.pick((1.1, 0.7, 0.3))))
    operands = (x, other) if choices.chance(60) else (other, x)
    if model.form == "qoperator":
        names = [name for value in operands for name in (value.name, *model.parameters(value))]
        model.node(f"QLinear{op}", [*names, *model.parameters(out)], out.name, "com.microsoft")
    else:
        model.quantised(model.node(op, [model.dequantised(each) for each in operands], f"float{len(model.nodes)}"), out)
    return out
