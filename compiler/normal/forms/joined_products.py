"""Products of one tensor whose results only stand side by side are one: tools that split a layer write this."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import ml_dtypes
import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.channel_parts import cut_in_order
from tilewright.compiler.normal.constant_levels import ConstantLevels, of_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.ranks import rank_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    attribute,
    constant,
    is_constant,
    is_dequantise,
    is_quantise,
    per_tensor,
    readers,
)

__all__ = ["JOINED"]

_Constant = np.ndarray | ConstantLevels

_LARGEST_BYTE = 255
_OFFSET = 2


@dataclass(frozen=True, slots=True)
class _Step:
    """A node between the common tensor and the Concat.

    ``data`` is the place of its computed input, ``held`` the constants with a number for each output: place, value and
    axis of outputs.
    """

    node: ir.Node
    data: int = 0
    held: tuple[tuple[int, _Constant, int], ...] = ()

    @property
    def kind(self) -> Hashable:
        """The steps that neighbours which can be one have in common."""
        joined = {place for place, _, _ in self.held}
        forms = tuple((place, _type(each, place), np.delete(_array(each).shape, axis).tobytes(), axis)
                      for place, each, axis in self.held)
        same = tuple(_bytes(each) for place, each in enumerate(self.node.inputs) if place not in {self.data, *joined})
        attributes = tuple(sorted((name, str(each.value)) for name, each in self.node.attributes.items()
                                  if not _says_nothing(name, each.value)))
        return self.node.op_type, attributes, self.data, forms, same


def _array(held: _Constant) -> np.ndarray:
    return held.levels if isinstance(held, ConstantLevels) else held


def _says_nothing(name: str, value: object) -> bool:
    """Tell whether an attribute of a window is what is meant without it; its kernel's shape is that of its weights."""
    if name in ("strides", "dilations", "pads"):
        return set(value) == {int(name != "pads")}  # type: ignore[call-overload]
    return name == "kernel_shape" or (name, value) in (("auto_pad", "NOTSET"), ("auto_pad", "VALID"), ("group", 1))


def _type(held: _Constant, place: int) -> str:
    """Return what constants of products have in common that can be one: of levels, how many bytes each has.

    Offsets may be levels of 32 bits and floats, which those of them are.
    """
    array = _array(held)
    if place == _OFFSET and (array.dtype == np.float32 or (isinstance(held, ConstantLevels) and array.itemsize == 4)):
        return "offsets"
    return f"levels of {array.itemsize}" if isinstance(held, ConstantLevels) else array.dtype.str


def _bytes(value: ir.Value | None) -> Hashable:
    array = constant(value)
    return None if array is None else (array.dtype.str, array.tobytes())


def _apply(edit: Edit) -> int:
    return sum(_joined(edit, node) for node in edit.nodes() if node.op_type == "Concat" and not node.domain)


def _joined(edit: Edit, concat: ir.Node) -> bool:
    """Join neighbours among the inputs of one Concat; tell whether there were some."""
    parts = [_steps(edit, concat, value) for value in concat.inputs]
    if (source := _grouped(parts)) is not None:
        new = _one(edit, concat, parts, source)
        assert new is not None
        new.type, new.shape = concat.outputs[0].type, concat.outputs[0].shape
        edit.replace(concat, new)
        return True
    kinds: list[Hashable] = [(id(steps[0].node.inputs[0]), *(each.kind for each in steps)) if steps else place
                             for place, steps in enumerate(parts)]
    runs = [each for _, run in groupby(enumerate(kinds), lambda each: each[1])
            for each in _possible([place for place, _ in run], parts)]
    if len(runs) == len(parts):
        return False
    inputs = [_one(edit, concat, [parts[place] for place in run]) if len(run) > 1 else concat.inputs[run[0]]
              for run in runs]
    new = inputs[0]
    if len(inputs) > 1 or new is None:
        new = edit.insert(concat, "Concat", inputs, {"axis": attribute(concat, "axis", 1)})
    new.type, new.shape = concat.outputs[0].type, concat.outputs[0].shape
    edit.replace(concat, new)
    return True


def _possible(run: list[int], parts: Sequence[Sequence[_Step]]) -> list[list[int]]:
    """Return a run of neighbours as it is if their constants can stand side by side, and one by one if they cannot."""
    alike = zip(*(parts[place] for place in run), strict=True)
    fits = all(_side_by_side([each.held[index][1] for each in steps], axis) is not None
               for steps in alike for index, (_, _, axis) in enumerate(steps[0].held))
    return [run] if fits else [[place] for place in run]


def _grouped(parts: Sequence[Sequence[_Step]]) -> ir.Value | None:
    """Return the tensor whose equal parts, in order, are what Convs that are alike read; None if there is none."""
    if len(parts) < 2 or not all(parts) or len({tuple(each.kind for each in steps) for steps in parts}) > 1 or (
            parts[0][0].node.op_type != "Conv") or len(_possible(list(range(len(parts))), parts)) > 1:
        return None
    return cut_in_order([steps[0].node.inputs[0] for steps in parts], _array(parts[0][0].held[0][1]).shape[1])


def _steps(edit: Edit, concat: ir.Node, value: ir.Value | None) -> list[_Step]:
    """Return a product and the functions of one element that make an input of a Concat of its outputs, if all do."""
    found: list[_Step] = []
    while value is not None and not edit.is_output(value) and len(readers(value)) == 1:
        node = value.producer()
        step = None if node is None or node.domain else _step(node)
        if step is None:
            return []
        found.insert(0, step)
        if step.node.op_type in ("Conv", "MatMul", "Gemm"):
            return found if _is_of_outputs(concat, found) else []
        value = step.node.inputs[step.data]
    return []


def _is_of_outputs(concat: ir.Node, steps: Sequence[_Step]) -> bool:
    """Tell whether a Concat joins outputs of a product, and what is added behind it is a number for each of them."""
    product = steps[0]
    _, weights, outputs = product.held[0]
    convolved = product.node.op_type == "Conv"
    rank = _array(weights).ndim if convolved else rank_of(product.node.inputs[0])
    if rank is None or attribute(concat, "axis", 1) % rank != (1 if convolved else rank - 1):
        return False
    count = _array(weights).shape[outputs]
    return all(_array(each).shape[at] == count for step in steps for _, each, at in step.held) \
        and not (convolved and any(each.held for each in steps[1:]))


def _step(node: ir.Node) -> _Step | None:
    """Return a node as a step; None of one that no rule is known for."""
    if node.op_type == "Conv" and attribute(node, "group", 1) == 1:
        return _with_constants(node, 0, dict.fromkeys(range(1, len(node.inputs)), 0))
    if node.op_type == "MatMul" or (node.op_type == "Gemm" and not attribute(node, "transA", 0)):
        axes = {1: 0 if attribute(node, "transB", 0) else 1, 2: 0}
        return _with_constants(node, 0, {place: axes[place] for place in range(1, len(node.inputs))})
    if node.op_type == "Add":
        return _with_constants(node, 0, {1: 0}) or _with_constants(node, 1, {0: 0})
    pointwise = node.op_type in ("Relu", "Clip") or ((is_quantise(node) or is_dequantise(node)) and per_tensor(node))
    fixed = all(each is None or is_constant(each) for each in node.inputs[1:])
    return _Step(node) if pointwise and fixed else None


def _with_constants(node: ir.Node, data: int, axes: dict[int, int]) -> _Step | None:
    """Return a step whose other inputs are constants, weights with all their axes, biases with one."""
    held = []
    for place, axis in axes.items():
        value = node.inputs[place]
        if value is None:
            continue
        levels = of_constant(value)
        found: _Constant | None = constant(value) if levels is None else levels
        if found is None or not _fits(node, place, _array(found)):
            return None
        if levels is not None and ((axes_of := levels.axis_of_parameters()) is None or axes_of[2] not in (None, axis)):
            return None
        held.append((place, found, axis))
    return _Step(node, data, tuple(held)) if held else None


def _fits(node: ir.Node, place: int, array: np.ndarray) -> bool:
    if node.op_type == "Add" or place > 1:
        return array.ndim == 1
    return array.ndim > 2 if node.op_type == "Conv" else array.ndim == 2


def _one(edit: Edit, place: ir.Node, parts: Sequence[Sequence[_Step]],
         whole: ir.Value | None = None) -> ir.Value | None:
    """Add what stands for neighbours before ``place``, which may read parts of ``whole``, and return its result."""
    value = parts[0][0].node.inputs[0] if whole is None else whole
    name = parts[0][0].node.outputs[0].name
    for alike in zip(*parts, strict=True):
        first = alike[0]
        inputs = list(first.node.inputs)
        inputs[first.data] = value
        for index, (at, _, axis) in enumerate(first.held):
            joined = _side_by_side([each.held[index][1] for each in alike], axis)
            assert joined is not None
            inputs[at] = _added(edit, place, joined, axis)
        attributes = {key: each.value for key, each in first.node.attributes.items()}
        if whole is not None and first.node.op_type == "Conv":
            attributes["group"] = len(parts)
        value = edit.insert(place, first.node.op_type, inputs, attributes, like=name)
    return value


def _side_by_side(held: Sequence[_Constant], axis: int) -> _Constant | None:
    """Return constants of several products as one of all their outputs; None of levels that no zero point holds."""
    levels = [each for each in held if isinstance(each, ConstantLevels)]
    if len(levels) < len(held):
        return np.concatenate([each.real if isinstance(each, ConstantLevels) else each for each in held], axis)
    difference = np.concatenate([each.difference for each in levels], axis)
    scale = np.concatenate([np.broadcast_to(each.scale, each.levels.shape) for each in levels], axis)
    for kind, zero in _zero_points(levels, difference):
        bounds, moved = ml_dtypes.iinfo(kind), difference + zero
        if bounds.min <= moved.min() and moved.max() <= bounds.max:
            return ConstantLevels(moved.astype(kind), scale, np.asarray(zero))
    return None


def _zero_points(levels: Sequence[ConstantLevels], difference: np.ndarray) -> Iterator[tuple[np.dtype, int]]:
    """Yield types and zero points that might hold levels: the parts' own, then that of the smallest uint8.

    All outputs have the same one: ONNX Runtime's kernels know no other products.
    """
    for each in levels:
        if np.ptp(each.zero) == 0:
            yield each.levels.dtype, int(each.zero.flat[0])
    if levels[0].levels.itemsize == 1:
        yield np.dtype(np.uint8), min(max(-int(difference.min()), 0), _LARGEST_BYTE)


def _added(edit: Edit, place: ir.Node, held: _Constant, axis: int) -> ir.Value:
    """Add a constant before ``place``, and a DequantizeLinear of it if it is levels."""
    name = f"{place.outputs[0].name}:joined"
    value = edit.constant(_array(held), name)
    if not isinstance(held, ConstantLevels):
        return value
    found = held.axis_of_parameters()
    assert found is not None
    given = [edit.constant(each, name) for each in found[:2]]
    return edit.insert(place, "DequantizeLinear", [value, *given], {} if found[2] is None else {"axis": axis},
                       like=name)


JOINED = Rule("joined", "A Concat of outputs does not join Convs, Gemms or MatMuls of one tensor that differ in their "
              "constants alone; Convs of its equal parts are one of groups",
              "each output is the same sum, of one product", _apply)
