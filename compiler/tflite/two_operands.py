"""Operators of TensorFlow Lite on two tensors: sums, differences, products and maxima, one of them maybe broadcast."""

from collections.abc import Callable

import numpy as np

from tilewright.compiler.tflite.adder import fitted_addends, moved_scale
from tilewright.compiler.tflite.bounds import put_result
from tilewright.compiler.tflite.element_moves import in_file_layout
from tilewright.compiler.tflite.graph_builder import FIRST, GraphBuilder, LevelNumbers, channels_first
from tilewright.compiler.tflite.level_functions import put_table
from tilewright.compiler.tflite.long_products import LongProduct, put_long, too_far
from tilewright.compiler.tflite.numbers import kernel_numbers
from tilewright.compiler.tflite.numbers.channel_lines import channel_lines
from tilewright.compiler.tflite.numbers.litert_numbers import LEVELS, sum_of_levels
from tilewright.compiler.tflite.stored.tensors import TfliteOperator, TfliteTensor

__all__ = ["add", "aligned", "divide", "maximum", "minimum", "multiply", "square", "squared_difference", "subtract"]

_ALL, _REACH = 65536, 64
"""Pairs of levels, and so many float32 values to each side of a scale that are tried."""


def add(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add an ADD."""
    _put(builder, operator, "Add", lambda a, b: _sum_of_constant(operator, builder, a, b, 1))


def subtract(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SUB: an addition of the other operand's complement."""
    _put(builder, operator, "Sub", lambda a, b: _sum_of_constant(operator, builder, a, b, -1))


def multiply(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a MUL, whose products LiteRT scales in float32 as ONNX Runtime does.

    ONNX Runtime adds the zero point before it rounds halves to even, and LiteRT behind (:func:`_put_product`).
    """
    def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        (x, z), y = _operands(builder, operator), builder.tensor(operator.outputs[0])
        return _product_levels(builder, (x, z, y), (a - x.zero) * (b - z.zero)) + y.zero

    if (_put_channel_product if builder.engine == "litert" else _put_long_product)(builder, operator) \
            or (builder.engine == "litert" and _put_product(builder, operator)):
        return
    _put(builder, operator, "Mul", product)


def _put_product(builder: GraphBuilder, operator: TfliteOperator) -> bool:
    """Write a product of two computed tensors; tell whether it is one.

    What float32 loses of a product to a large zero point makes halves of what is next to one. A scale that is a few
    float32 values beside makes up for it, tried for all pairs. Where halves exist, as of scales that are powers of two,
    an odd zero point turns some to the other side, and no scale brings all back.
    """
    (x, z), y = _operands(builder, operator), builder.tensor(operator.outputs[0])
    if any(not each.is_levels or each.dtype != "int8" for each in (x, z, y)) or x.data is not None \
            or z.data is not None:
        return False
    pairs, counts = np.unique((LEVELS[:, None] - x.zero) * (LEVELS[None] - z.zero).astype(np.int64), return_counts=True)
    wanted = np.clip(_product_levels(builder, (x, z, y), pairs) + y.zero, -128, 127)
    best, fewest = x.scale, _ALL + 1
    for step in sorted(range(-_REACH, _REACH + 1), key=abs):
        near = moved_scale(x.scale, step)
        scaled = pairs.astype(np.float32) * np.float32(np.float32(near * z.scale) / y.scale)
        wrong = int(counts[np.clip(np.rint(scaled + np.float32(y.zero)), -128, 127) != wanted].sum())
        if wrong < fewest:
            best, fewest = near, wrong
        if not wrong:
            break
    if fewest:
        builder.near(operator, f"{fewest:,} of {_ALL:,} pairs of its operands are near a half of a level")
    names = [builder.dequantised(aligned(builder, index, len(y.shape)), LevelNumbers(scale, each.zero, each.dtype))
             for index, each, scale in zip(operator.inputs, (x, z), (best, z.scale), strict=True)]
    put_result(builder, operator, builder.node("Mul", names, like=y.name))
    return True


def _put_long_product(builder: GraphBuilder, operator: TfliteOperator) -> bool:
    """Write a product of levels in whole numbers; tell whether it is one, and not that of a tensor by one number."""
    (x, z), y = _operands(builder, operator), builder.tensor(operator.outputs[0])
    if any(not each.is_levels or each.dtype != y.dtype for each in (x, z, y)) or 1 in (
            each.data.size for each in (x, z) if each.data is not None):
        return False
    multiplier, shift = (np.array(each, np.int64) for each in kernel_numbers.long_numbers(
        [float(x.scale) * float(z.scale) / float(y.scale)]))
    if why := too_far(shift):
        builder.near(operator, why)
        return False
    levels = LevelNumbers(np.float32(1), y.zero, y.dtype)
    if (weights := _channel_weights(x, z, y)) is not None:
        product = LongProduct(x, weights, None, np.array(float(x.scale) * float(z.scale) / float(y.scale)), twice=True)
        real = product.put(builder, "Conv", builder.stored(x.index), y, {"group": len(weights)})
    else:
        names = [builder.dequantised(aligned(builder, each.index, len(y.shape)),
                                     LevelNumbers(np.float32(1), each.zero, each.dtype)) for each in (x, z)]
        sums = builder.node("Mul", names, like=y.name)
        real = put_long(builder, (sums,), y.name, (multiplier, shift, np.zeros(1, np.int64)), twice=True)
    put_result(builder, operator, real, levels)
    return True


def _channel_weights(x: TfliteTensor, z: TfliteTensor, y: TfliteTensor) -> np.ndarray | None:
    """Return a constant that has a number for each channel of an image as weights; None if it is none."""
    if z.data is None or z.data.size == 1 or x.data is not None or len(x.shape) != 4 or x.shape != y.shape \
            or z.data.size != x.shape[3] or (z.shape or (1,))[-1] != x.shape[3]:
        return None
    return z.data.reshape(-1, 1, 1, 1).astype(np.int16) - z.zero


def _product_levels(builder: GraphBuilder, tensors: tuple[TfliteTensor, ...], products: np.ndarray) -> np.ndarray:
    """Return the engine's levels of products of two operands, before the zero point."""
    x, z, y = tensors
    if builder.engine == "litert":
        scale = np.float32(np.float32(x.scale * z.scale) / y.scale)
        return np.rint(products.astype(np.float32) * scale).astype(np.int64)
    return kernel_numbers.scaled_levels(products, float(x.scale) * float(z.scale) / float(y.scale))


def divide(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a DIV of floats."""
    if builder.tensor(operator.outputs[0]).is_levels:
        raise operator.refusal("it divides integers", "convert the model with a product by the reciprocal")
    _put_real(builder, operator, "Div")


def square(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SQUARE of floats."""
    if builder.tensor(operator.outputs[0]).is_levels:
        raise operator.refusal("it squares integers", "convert the model with a product of the tensor by itself")
    name = builder.stored(operator.inputs[0])
    builder.put(operator.outputs[0], "Mul", [name, name])


def squared_difference(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SQUARED_DIFFERENCE."""
    y = builder.tensor(operator.outputs[0])
    if y.is_levels:
        builder.near(operator, "its squares are rounded once from real numbers")
    first, second = (builder.as_real(aligned(builder, index, len(y.shape)), builder.tensor(index))
                     for index in operator.inputs)
    difference = builder.node("Sub", [first, second], like=y.name)
    put_result(builder, operator, builder.node("Mul", [difference, difference], like=y.name))


def maximum(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a MAXIMUM."""
    _put_choice(builder, operator, "Max", np.maximum)


def minimum(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a MINIMUM."""
    _put_choice(builder, operator, "Min", np.minimum)


def _operands(builder: GraphBuilder, operator: TfliteOperator) -> tuple[TfliteTensor, TfliteTensor]:
    if len(operator.inputs) != 2 or min(operator.inputs) < 0:
        raise operator.refusal(f"it has {len(operator.inputs)} inputs", "convert the model again")
    return builder.tensor(operator.inputs[0]), builder.tensor(operator.inputs[1])


def _put_choice(builder: GraphBuilder, operator: TfliteOperator, kind: str,
                of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    x, z = _operands(builder, operator)
    y = builder.tensor(operator.outputs[0])
    if y.is_levels and any((each.scale, each.zero) != (y.scale, y.zero) for each in (x, z)):
        raise operator.refusal("its inputs and its output have different scales or zero points",
                               "convert the model with the converter's default, int8, which gives them one")
    _put(builder, operator, kind, of)


def _put(builder: GraphBuilder, operator: TfliteOperator, kind: str,
         levels_of: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
    """Write an operator's result: of levels and one constant as a table, else as ONNX's operator."""
    x, z = _operands(builder, operator)
    y = builder.tensor(operator.outputs[0])
    if len({each.is_levels for each in (x, z, y)}) > 1 or any(each.dtype != y.dtype for each in (x, z)):
        raise operator.refusal("some of its tensors are quantised, or of other types", "convert the model again")
    if not y.is_levels:
        _put_real(builder, operator, kind)
        return
    alone = [each.data is not None and each.data.size == 1 for each in (x, z)]
    if y.dtype == "int8" and alone[1] and x.data is None and x.shape == y.shape:
        assert z.data is not None
        put_table(builder, operator, operator.inputs[0], levels_of(LEVELS.astype(np.int64),
                                                                   z.data.reshape(-1).astype(np.int64)))
    elif y.dtype == "int8" and alone[0] and z.data is None and z.shape == y.shape:
        assert x.data is not None
        put_table(builder, operator, operator.inputs[1], levels_of(x.data.reshape(-1).astype(np.int64),
                                                                   LEVELS.astype(np.int64)))
    elif kind in ("Add", "Sub") and y.dtype == "int8":
        _put_sum(builder, operator, kind)
    else:
        _put_real(builder, operator, kind)


def _put_real(builder: GraphBuilder, operator: TfliteOperator, kind: str) -> None:
    y = builder.tensor(operator.outputs[0])
    if y.is_levels and any(each.data is not None for each in _operands(builder, operator)):
        builder.near(operator, "one of its operands is a constant of several elements")
    names = [builder.as_real(aligned(builder, index, len(y.shape)), builder.tensor(index))
             for index in operator.inputs]
    put_result(builder, operator, builder.node(kind, names, like=y.name))


def _put_channel_product(builder: GraphBuilder, operator: TfliteOperator) -> bool:
    """Write a product by a constant for each channel as a convolution, which LiteRT rounds alike; tell if it is one."""
    (x, z), y = _operands(builder, operator), builder.tensor(operator.outputs[0])
    if not all(each.is_levels and each.dtype == "int8" for each in (x, z, y)):
        return False
    weights = _channel_weights(x, z, y)
    if weights is None or weights.min() < -128 or weights.max() > 127:
        return False
    name = builder.constant(weights.astype(np.int8), f"{y.name}:weights")
    inputs = [builder.real(x.index), builder.dequantised(name, LevelNumbers(z.scale, 0))]
    put_result(builder, operator, builder.node("Conv", inputs, like=y.name, group=len(weights)))
    return True


def _put_channel_sum(builder: GraphBuilder, operator: TfliteOperator, sign: int) -> bool:
    """Write a sum or difference with a constant for each channel as a convolution of one pixel; tell if it can be."""
    tensors, y = _operands(builder, operator), builder.tensor(operator.outputs[0])
    place = next((place for place, (x, z) in enumerate((tensors, tensors[::-1]))
                  if _channel_weights(x, z, y) is not None), None)
    if place is None:
        return False
    x, z = tensors[place], tensors[1 - place]
    assert z.data is not None
    table, chosen = _sum_table(builder, operator, sign), z.data.reshape(-1).astype(np.int64) + 128
    turn = sign if place else 1     # A difference falls along what is subtracted.
    lines = channel_lines(table[chosen] if place else table[:, chosen].T, x.zero, y.zero,
                          turn * float(x.scale) / float(y.scale))
    if lines is None:
        return False
    weights, biases, scales = zip(*lines, strict=True)
    like = f"{y.name}:channels"
    scale = builder.constant(np.array(scales, np.float32), f"{like} scale")
    zeros = [builder.constant(np.zeros(len(lines), kind), f"{like} zero") for kind in (np.int8, np.int32)]
    names = [builder.constant(np.array(weights, np.int8).reshape(-1, 1, 1, 1), f"{like} weights"),
             builder.constant(np.array(biases, np.int32), f"{like} bias")]
    inputs = [builder.node("DequantizeLinear", [name, scale, zero], like=like, axis=0)
              for name, zero in zip(names, zeros, strict=True)]
    real = builder.dequantised(builder.stored(x.index), LevelNumbers(np.float32(1), x.zero))
    put_result(builder, operator, builder.node("Conv", [real, *inputs], like=y.name, group=len(lines)),
               LevelNumbers(np.float32(1), y.zero))
    return True


def _put_sum(builder: GraphBuilder, operator: TfliteOperator, kind: str) -> None:
    """Write a sum or difference with the scales that make it the engine's."""
    if _put_channel_sum(builder, operator, -1 if kind == "Sub" else 1):
        return
    x, z = _operands(builder, operator)
    y = builder.tensor(operator.outputs[0])
    names = [aligned(builder, index, len(y.shape)) for index in operator.inputs]
    second = LevelNumbers.of(z)
    if kind == "Sub":
        second = LevelNumbers(z.scale, -1 - z.zero)
        opposite = builder.node("Neg", [builder.as_real(names[1], z)], like=y.name)
        names[1] = builder.quantised(opposite, second, like=y.name)
    first, second, wrong = fitted_addends(LevelNumbers.of(x), second, LevelNumbers.of(y), builder.engine,
                                          -1 if kind == "Sub" else 1)
    if wrong:
        builder.near(operator, f"{wrong:,} of {_ALL:,} pairs of its operands")
    if any(each.data is not None for each in (x, z)):
        builder.near(operator, "one of its operands is a constant of several elements")
    total = builder.node("Add", [builder.dequantised(name, levels) for name, levels in
                                 zip(names, (first, second), strict=True)], like=y.name)
    put_result(builder, operator, total)


def _sum_of_constant(operator: TfliteOperator, builder: GraphBuilder, a: np.ndarray, b: np.ndarray,
                     sign: int) -> np.ndarray:
    """Return the engine's sums or differences of levels, all of one operand and one of the other."""
    return np.broadcast_to(_sum_table(builder, operator, sign)[a + 128, b + 128], (256,))


def _sum_table(builder: GraphBuilder, operator: TfliteOperator, sign: int) -> np.ndarray:
    """Return the engine's sums or differences of all levels, (256, 256), not saturated."""
    x, z = _operands(builder, operator)
    y = builder.tensor(operator.outputs[0])
    zeros = x.zero, z.zero, y.zero
    if builder.engine == "litert":
        return sum_of_levels(np.float32(x.scale / y.scale), np.float32(z.scale / y.scale), zeros, sign)
    return kernel_numbers.sum_of_levels((x.scale, z.scale, y.scale), zeros, sign)


def aligned(builder: GraphBuilder, index: int, rank: int) -> str:
    """Return a tensor's content with as many axes as its result has, the first ones of one element."""
    tensor = builder.tensor(index)
    if len(tensor.shape) == rank or rank != len(FIRST):
        return builder.stored(index)
    shape = (1,) * (rank - len(tensor.shape)) + tensor.shape
    if tensor.data is not None:
        return builder.constant(channels_first(tensor.data.reshape(shape)), f"{tensor.name}:constant")
    to = builder.constant(np.array(shape, np.int64), f"{tensor.name}:shape")
    name = builder.node("Reshape", [in_file_layout(builder, index), to], like=tensor.name)
    return builder.node("Transpose", [name], like=tensor.name, perm=FIRST)
