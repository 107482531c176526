"""A division, rounding and clipping that quantise are a QuantizeLinear, and the product that undoes them its DQ."""

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute, constant, is_constant, is_quantise, readers

__all__ = ["SPELLED_OUT"]

_TYPES = (np.dtype(np.int8), np.dtype(np.uint8))
_WHOLE = {int(kind): kind.numpy() for kind in (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT16,
                                               ir.DataType.INT32, ir.DataType.INT64)}


@dataclass(slots=True)
class _Arithmetic:
    """Findings along a chain of nodes: ``levels = clip(round(x / scale) + zero, low, high)``, up to ``node``."""

    x: ir.Value
    scale: np.float32
    node: ir.Node
    zero: int = 0
    low: float = -np.inf
    high: float = np.inf

    @property
    def next(self) -> ir.Node | None:
        """The one node that reads the last one's result."""
        found = readers(self.node.outputs[0])
        return found[0] if len(found) == 1 and not found[0].domain else None

    @property
    def kind(self) -> np.dtype | None:
        """The type of 8 bits that holds the levels and their zero point."""
        return next((each for each in _TYPES if np.iinfo(each).min <= self.low and self.high <= np.iinfo(each).max
                     and np.iinfo(each).min <= self.zero <= np.iinfo(each).max), None)

    @property
    def fills(self) -> bool:
        """Whether the bounds are those of the type."""
        return self.kind is not None and (self.low, self.high) == (np.iinfo(self.kind).min, np.iinfo(self.kind).max)


def _apply(edit: Edit) -> int:
    rewrite = {"Round": _written, "Cast": _cast_back}
    return sum(rewrite[node.op_type](edit, node) for node in edit.nodes()
               if not node.domain and node.op_type in rewrite and node.graph is not None)


def _cast_back(edit: Edit, node: ir.Node) -> bool:
    """Put a DQ in the place of a Cast of levels to float, perhaps less a zero point, and a product by a scale."""
    levels = node.inputs[0]
    maker = None if levels is None else levels.producer()
    if levels is None or not is_quantise(maker) or levels.dtype not in (ir.DataType.INT8, ir.DataType.UINT8) \
            or attribute(node, "to") != int(ir.DataType.FLOAT):
        return False
    steps = _Arithmetic(levels, np.float32(1), node)
    behind, kind = steps.next, levels.dtype.numpy()
    if behind is not None and behind.op_type == "Sub" and (zero := _whole(behind, 1)) is not None \
            and np.iinfo(kind).min <= zero <= np.iinfo(kind).max:
        steps.node, steps.zero = behind, zero
        behind = steps.next
    scale = _factor(behind) if behind is not None else None
    if behind is None or scale is None:
        return False
    parameters = [edit.constant(np.asarray(scale), f"{levels.name}:scale"),
                  edit.constant(np.asarray(steps.zero, kind), f"{levels.name}:zero")]
    edit.replace(behind, edit.insert(behind, "DequantizeLinear", [levels, *parameters], like=levels.name))
    return True


def _factor(node: ir.Node) -> np.float32 | None:
    """Return the one positive constant that a node multiplies by; None of another."""
    value = constant(node.inputs[1]) if node.op_type == "Mul" and len(node.inputs) == 2 else None
    if value is None or value.dtype != np.float32 or value.size != 1 or not 0 < value.flat[0] < np.inf:
        return None
    return np.float32(value.flat[0])


def _written(edit: Edit, node: ir.Node) -> bool:
    """Put a Q and a DQ in the place of the arithmetic around a Round; tell whether it quantises."""
    found = _quantised(node) or _cast(node)
    if found is None:
        return False
    kind, last = found.kind, found.node
    if kind is None:
        return False
    if attribute(last, "to", 0) == int(ir.DataType.from_numpy(kind)) and found.fills \
            and not (found.next is not None and found.next.op_type == "Cast"):
        if _is_parameter(last.outputs[0]):
            return False
        edit.replace(last, _levels(edit, found, kind))
        return True
    end = _undone(found)
    if end is None:
        return False
    levels = _levels(edit, found, kind)
    real = edit.insert(end, "DequantizeLinear", [levels, *_parameters(levels)], like=found.x.name)
    if not found.fills:
        bounds = [np.asarray(np.float32(each - found.zero) * found.scale) for each in (found.low, found.high)]
        real = edit.insert(end, "Clip", [real, *(edit.constant(each, f"{found.x.name}:bound") for each in bounds)])
    edit.replace(end, real)
    return True


def _is_parameter(value: ir.Value) -> bool:
    """Tell whether bytes are read as the zero point or scale of levels, as DynamicQuantizeLinear spelled out does."""
    return any(value in node.inputs[1:] for node in readers(value) if node.op_type.endswith("QuantizeLinear")
               or node.op_type == "DequantizeLinear")


def _quantised(node: ir.Node) -> _Arithmetic | None:
    """Return the steps from a division to the last that gives levels; None where there are no bounds."""
    divided = None if node.inputs[0] is None else node.inputs[0].producer()
    scale = None if divided is None or divided.domain else _divisor(divided)
    x = None if divided is None else divided.inputs[0]
    if scale is None or x is None or is_constant(x) or x.dtype not in (None, ir.DataType.FLOAT):
        return None
    steps = _Arithmetic(x, scale, node)
    behind = steps.next
    if behind is not None and behind.op_type == "Add" and (zero := _whole(behind, 1)) is not None:
        steps.node, steps.zero = behind, zero
        behind = steps.next
    low, high = (None, None) if behind is None or behind.op_type != "Clip" else (_whole(behind, 1), _whole(behind, 2))
    if behind is None or low is None or high is None or low > high:
        return None
    steps.node, steps.low, steps.high = behind, low, high
    while (cast := steps.next) is not None and cast.op_type == "Cast" and _holds(attribute(cast, "to"), low, high):
        steps.node = cast
    return steps


def _cast(node: ir.Node) -> _Arithmetic | None:
    """Return the steps of a Round that is cast to bytes, perhaps clipped to all that they hold: a scale of 1."""
    x = node.inputs[0]
    if x is None or is_constant(x) or x.dtype not in (None, ir.DataType.FLOAT):
        return None
    steps = _Arithmetic(x, np.float32(1), node)
    clip = steps.next
    bounds = None
    if clip is not None and clip.op_type == "Clip":
        bounds, steps.node = (_whole(clip, 1), _whole(clip, 2)), clip
    cast = steps.next
    kind = _WHOLE.get(attribute(cast, "to")) if cast is not None and cast.op_type == "Cast" else None
    if cast is None or kind is None or kind not in _TYPES:
        return None
    steps.node, steps.low, steps.high = cast, np.iinfo(kind).min, np.iinfo(kind).max
    return steps if bounds in (None, (steps.low, steps.high)) else None


def _divisor(node: ir.Node) -> np.float32 | None:
    """Return what a node divides by: a constant, or the inverse of a power of two that it multiplies by."""
    value = constant(node.inputs[1]) if node.op_type in ("Div", "Mul") and len(node.inputs) == 2 else None
    if value is None or value.dtype != np.float32 or value.size != 1 or not 0 < value.flat[0] < np.inf:
        return None
    number = np.float32(value.flat[0])
    if node.op_type == "Div":
        return number
    return np.float32(1 / number) if np.frexp(number)[0] == 0.5 else None


def _whole(node: ir.Node, index: int) -> int | None:
    """Return a constant whole number that a node reads; None of another."""
    value = constant(node.inputs[index]) if len(node.inputs) > index else None
    if value is None or value.size != 1 or not np.isfinite(value.flat[0]) or value.flat[0] != np.rint(value.flat[0]):
        return None
    return int(value.flat[0])


def _holds(kind: int, low: float, high: float) -> bool:
    """Tell whether a type holds whole numbers between two bounds as they are."""
    if kind == int(ir.DataType.FLOAT):
        return True
    return kind in _WHOLE and np.iinfo(_WHOLE[kind]).min <= low and high <= np.iinfo(_WHOLE[kind]).max


def _undone(steps: _Arithmetic) -> ir.Node | None:
    """Return the node behind levels that gives floats again, by the zero point and scale that made them."""
    node = steps.next
    if steps.zero:
        if node is None or node.op_type != "Sub" or _whole(node, 1) != steps.zero:
            return None
        found = readers(node.outputs[0])
        node = found[0] if len(found) == 1 and not found[0].domain else None
    return node if node is not None and _factor(node) == steps.scale else None


def _levels(edit: Edit, steps: _Arithmetic, kind: np.dtype) -> ir.Value:
    """Add the QuantizeLinear, before the last of the nodes that it stands for."""
    name = steps.x.name
    parameters = [edit.constant(np.asarray(steps.scale), f"{name}:scale"),
                  edit.constant(np.asarray(steps.zero, kind), f"{name}:zero")]
    return edit.insert(steps.node, "QuantizeLinear", [steps.x, *parameters], like=name)


def _parameters(levels: ir.Value) -> tuple[ir.Value | None, ...]:
    maker = levels.producer()
    assert maker is not None
    return tuple(maker.inputs[1:])


SPELLED_OUT = Rule("spelled out", "Div, Round, Add, Clip and Cast that quantise by constants are a Q, and Sub and Mul "
                   "by the same ones its DQ", "these are the definitions of the two, step by step; ONNX leaves open "
                   "what a Cast makes of numbers that its type does not hold", _apply)
