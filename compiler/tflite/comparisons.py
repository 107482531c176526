"""Comparisons, logic, choices of elements and changes of type.

Levels are compared as the kernels do: each operand is a number of 256ths, rounded, so that two levels next to one
another may be equal. LiteRT's default session leaves these to its built-in kernels, which are TensorFlow Lite Micro's.
Source: ``ComparisonWithScaling`` in TensorFlow Lite's ``kernels/internal/reference/comparisons.h``.
"""

from collections.abc import Callable

import numpy as np

from tilewright.compiler.tflite.bounds import put_result
from tilewright.compiler.tflite.graph_builder import FLOAT, INT32, INT64, GraphBuilder, LevelNumbers
from tilewright.compiler.tflite.long_products import put_long, too_far
from tilewright.compiler.tflite.numbers.kernel_numbers import scaled_levels
from tilewright.compiler.tflite.numbers.litert_numbers import fixed_point
from tilewright.compiler.tflite.stored.tensors import TfliteOperator
from tilewright.compiler.tflite.two_operands import aligned

__all__ = ["cast", "combine", "compare", "invert", "select"]

_AGAIN = "convert the model again"
_COMPARISONS = {"EQUAL": "Equal", "GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual", "LESS": "Less",
                "LESS_EQUAL": "LessOrEqual"}
_TRUTHS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "EQUAL": np.equal, "GREATER": np.greater, "GREATER_EQUAL": np.greater_equal, "LESS": np.less,
    "LESS_EQUAL": np.less_equal, "NOT_EQUAL": np.not_equal}
_PLACES = 8
"""Bits of fraction of the numbers that stand for levels."""
_CASTS = {"bool": 9, "float32": FLOAT, "int32": INT32, "int64": INT64}
"""ONNX's numbers of types."""


def compare(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add an EQUAL, NOT_EQUAL, GREATER, GREATER_EQUAL, LESS or LESS_EQUAL."""
    if len(operator.inputs) != 2 or min(operator.inputs) < 0:
        raise operator.refusal(f"it has {len(operator.inputs)} inputs", _AGAIN)
    a, b, y = (builder.tensor(index) for index in (*operator.inputs, operator.outputs[0]))
    if a.dtype != b.dtype or y.dtype != "bool" or a.is_levels != b.is_levels:
        raise operator.refusal(f"it compares {a.dtype} with {b.dtype} to {y.dtype}", _AGAIN)
    if (truths := _truths(builder, operator)) is not None:
        builder.put(operator.outputs[0], "Identity", [truths])
        return
    names = [_number(builder, operator, index, len(y.shape)) for index in operator.inputs]
    unequal = operator.kind == "NOT_EQUAL"
    kind = "Equal" if unequal else _COMPARISONS[operator.kind]
    if unequal:
        builder.put(operator.outputs[0], "Not", [builder.node(kind, names, like=y.name)])
    else:
        builder.put(operator.outputs[0], kind, names)


def _truths(builder: GraphBuilder, operator: TfliteOperator) -> str | None:
    """Return the truths of levels beside one constant level, as bounds of real numbers; None of other operands.

    The levels for which a comparison is true are a run of them, or all but a run.
    """
    a, b = (builder.tensor(index) for index in operator.inputs)
    y, flipped = builder.tensor(operator.outputs[0]), a.data is not None
    x, other = (b, a) if flipped else (a, b)
    if not x.is_levels or x.data is not None or other.data is None or other.data.size != 1 or x.shape != y.shape:
        return None
    ends = np.iinfo(x.dtype)
    levels = np.arange(ends.min, ends.max + 1)
    own = scaled_levels((levels - x.zero) << _PLACES, float(x.scale))
    one = scaled_levels((other.data.reshape(1).astype(np.int64) - other.zero) << _PLACES, float(other.scale))
    true = _TRUTHS[operator.kind](*((one, own) if flipped else (own, one)))
    inverted = bool(true[0] and true[-1] and not true.all())
    found = np.flatnonzero(true != inverted)
    first, last = (int(found[0]), int(found[-1])) if found.size else (1, 0)
    if found.size != max(last - first + 1, 0):
        return None
    real = builder.real(x.index)

    def beside(kind: str, place: float) -> str:
        bound = np.float32((levels[0] + place - x.zero) * float(x.scale))
        return builder.node(kind, [real, builder.constant(np.array(bound, np.float32), f"{y.name}:bound")], like=y.name)

    parts = [*([beside("Greater", first - 0.5)] if first > 0 else []),
             *([beside("Less", last + 0.5)] if last < levels.size - 1 or first == 0 else [])]
    name = parts[0] if len(parts) == 1 else builder.node("And", parts, like=y.name)
    return builder.node("Not", [name], like=y.name) if inverted else name


def _number(builder: GraphBuilder, operator: TfliteOperator, index: int, rank: int) -> str:
    """Return what an operand is compared as."""
    tensor, name = builder.tensor(index), aligned(builder, index, rank)
    if not tensor.is_levels:
        return name
    multiplier, shift = fixed_point(float(tensor.scale))
    down = np.array(31 - shift)
    if shift > 0 or too_far(down):
        raise operator.refusal(f"its operand has the scale {tensor.scale}, and must have one below 1",
                               "convert the model with floats there")
    wide = builder.node("Cast", [name], like=tensor.name, to=INT32)
    steps = builder.node("Sub", [wide, builder.constant(np.array(tensor.zero, np.int32), f"{tensor.name}:zero")],
                         like=tensor.name)
    finer = builder.node("Mul", [steps, builder.constant(np.array(1 << _PLACES, np.int32), f"{tensor.name}:finer")],
                         like=tensor.name)
    return put_long(builder, (finer,), tensor.name, (np.array(multiplier), down, np.array(0)), twice=True)


def combine(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a LOGICAL_AND or LOGICAL_OR."""
    if len(operator.inputs) != 2 or any(builder.tensor(index).dtype != "bool" for index in operator.inputs):
        raise operator.refusal("it combines others than two truths", _AGAIN)
    rank = len(builder.tensor(operator.outputs[0]).shape)
    builder.put(operator.outputs[0], "And" if operator.kind == "LOGICAL_AND" else "Or",
                [aligned(builder, index, rank) for index in operator.inputs])


def invert(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a LOGICAL_NOT."""
    builder.put(operator.outputs[0], "Not", [builder.stored(operator.inputs[0])])


def select(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a SELECT or SELECT_V2, which takes each element from one of two tensors."""
    if len(operator.inputs) != 3 or min(operator.inputs) < 0:
        raise operator.refusal(f"it has {len(operator.inputs)} inputs", _AGAIN)
    given, a, b = (builder.tensor(index) for index in operator.inputs)
    y = builder.tensor(operator.outputs[0])
    if given.dtype != "bool" or any(each.dtype != y.dtype or each.is_levels != y.is_levels for each in (a, b)):
        raise operator.refusal(f"it chooses by {given.dtype} between {a.dtype} and {b.dtype} for {y.dtype}", _AGAIN)
    if y.is_levels and any(LevelNumbers.of(each) != LevelNumbers.of(y) for each in (a, b)):
        raise operator.refusal("its inputs and its output have different scales or zero points",
                               "convert the model with the converter's default, int8, which gives them one")
    rank = len(y.shape)
    if operator.kind == "SELECT" and given.shape not in ((), y.shape):
        raise operator.refusal(f"it chooses by {list(given.shape)} of {list(y.shape)}", "convert it to SELECT_V2")
    names = [builder.as_real(aligned(builder, index, rank), builder.tensor(index)) for index in operator.inputs[1:]]
    put_result(builder, operator, builder.node("Where", [aligned(builder, operator.inputs[0], rank), *names],
                                               like=y.name))


def cast(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a CAST between truths, whole numbers and floats."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if x.is_levels or y.is_levels or x.dtype not in _CASTS or y.dtype not in _CASTS or x.shape != y.shape:
        raise operator.refusal(f"it makes {y.dtype} of {list(y.shape)} of {x.dtype} of {list(x.shape)}",
                               "convert the model with QUANTIZE and DEQUANTIZE around levels")
    builder.put(operator.outputs[0], "Cast", [builder.stored(operator.inputs[0])], to=_CASTS[y.dtype])
