"""Random inputs that are normalised before they are quantised: floats and images of bytes, in any order of steps."""

from collections.abc import Callable

import numpy as np
from onnx import TensorProto, helper

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["prepared_input"]

_FUNCTIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "Sub": np.subtract, "Div": np.divide, "Mul": np.multiply, "Add": np.add}
_BOUNDS = {"Relu": (0.0, np.inf), "Clip": (-0.5, 1.5)}


def prepared_input(choices: Choices, model: ModelBuilder, shape: tuple[int, ...], *, image: bool = False) -> Value:
    """Add an input of ``shape``, floats or bytes, NCHW or NHWC, some arithmetic and a QuantizeLinear.

    ``image`` asks for bytes.
    """
    image, last = choices.chance(40) or image, choices.chance(30)
    name = f"image{len(model.inputs)}"
    outer = (shape[0], *shape[2:], shape[1]) if last else shape
    kind = TensorProto.UINT8 if image else TensorProto.FLOAT
    model.inputs.append(helper.make_tensor_value_info(name, kind, outer))
    early = last and choices.chance(50)
    if early:
        name = _turned(model, name)
    if image:
        name = model.node("Cast", [name], f"cast{len(model.nodes)}", to=TensorProto.FLOAT)
    values = np.broadcast_to(np.float32([0, 255] if image else [-2.5, 2.5]).reshape(2, 1, 1, 1), (2, *shape[1:]))
    for _ in range(choices.between(1, 4)):
        name, values = _step(choices, model, name, values, last and not early)
        if image and choices.chance(25):
            name, values = _between(model, name, values, outer if last and not early else shape)
    if last and not early:
        name = _turned(model, name)
    top = float(np.abs(values).max()) or 1.0
    y = model.value(shape, np.float32(top / 120))
    model.quantised(name, y)
    return y


def _between(model: ModelBuilder, name: str, values: np.ndarray, shape: tuple[int, ...]) -> tuple[str, np.ndarray]:
    """Quantise and dequantise what has been computed so far, as tf2onnx does behind every operator."""
    x = model.value(shape, np.float32((float(np.abs(values).max()) or 1.0) / 125))
    model.quantised(name, x)
    return model.dequantised(x), values


def _levels(constant: np.ndarray) -> tuple[np.ndarray, np.float32]:
    """Return int8 levels for positive numbers, and their scale."""
    scale = np.float32(constant.max() / 127)
    return np.maximum(np.rint(constant / scale), 1).astype(np.int8), scale


def _quantised(model: ModelBuilder, constant: np.ndarray) -> str:
    """Add a constant of int8 and the DequantizeLinear behind it."""
    levels, scale = _levels(constant)
    names = [model.constant(each) for each in (levels, scale, np.int8(0))]
    return model.node("DequantizeLinear", names, f"dequantised{len(model.nodes)}")


def _turned(model: ModelBuilder, name: str) -> str:
    return model.node("Transpose", [name], f"turned{len(model.nodes)}", perm=(0, 3, 1, 2))


def _step(choices: Choices, model: ModelBuilder, name: str, values: np.ndarray, last: bool) -> tuple[str, np.ndarray]:
    """Add one operator, with a constant per channel or one for all, and return its result and the range of that."""
    op = choices.pick(("Sub", "Div", "Mul", "Add", "Relu", "Clip"))
    result = f"{name}:{len(model.nodes)}"
    if op in _BOUNDS:
        low, high = _BOUNDS[op]
        bounds = [model.constant(np.float32(low)), model.constant(np.float32(high))] if op == "Clip" else []
        return model.node(op, [name, *bounds], result), np.clip(values, low, high)
    channels = values.shape[1]
    constant = model.rng.uniform(0.2, 2, channels if choices.chance(60) else 1).astype(np.float32)
    if choices.chance(20):
        constant = constant * np.float32(100)
    quantised = choices.chance(25)
    if quantised:
        constant = _levels(constant)[0] * _levels(constant)[1]
    swapped = op != "Div" and choices.chance(20)
    given = constant if last else constant.reshape(-1, 1, 1)
    if choices.chance(50):
        given = given.reshape(1, *given.shape) if last else given[None]
    names = [name, _quantised(model, given) if quantised else model.constant(given)]
    along = constant.reshape(-1, 1, 1)
    function = _FUNCTIONS[op]
    values = function(along, values) if swapped else function(values, along)
    return model.node(op, names[::-1] if swapped else names, result), values
