"""Products of one tensor whose results only stand side by side are one: tools that split a layer write this."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.constant_levels import ConstantLevels, of_constant
from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.forms.ranks import rank_of
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
        forms = tuple((place, _array(each).dtype.str, np.delete(_array(each).shape, axis).tobytes(), axis,
                       isinstance(each, ConstantLevels)) for place, each, axis in self.held)
        same = tuple(_bytes(each) for place, each in enumerate(self.node.inputs) if place not in {self.data, *joined})
        attributes = tuple(sorted((name, str(each.value)) for name, each in self.node.attributes.items()))
        return self.node.op_type, attributes, self.data, forms, same


def _array(held: _Constant) -> np.ndarray:
    return held.levels if isinstance(held, ConstantLevels) else held


def _bytes(value: ir.Value | None) -> Hashable:
    array = constant(value)
    return None if array is None else (array.dtype.str, array.tobytes())


def _apply(edit: Edit) -> int:
    return sum(_joined(edit, node) for node in edit.nodes() if node.op_type == "Concat" and not node.domain)


def _joined(edit: Edit, concat: ir.Node) -> bool:
    """Join neighbours among the inputs of one Concat; tell whether there were some."""
    parts = [_steps(edit, concat, value) for value in concat.inputs]
    kinds: list[Hashable] = [(id(steps[0].node.inputs[0]), *(each.kind for each in steps)) if steps else place
                             for place, steps in enumerate(parts)]
    runs = [[place for place, _ in run] for _, run in groupby(enumerate(kinds), lambda each: each[1])]
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


def _one(edit: Edit, place: ir.Node, parts: Sequence[Sequence[_Step]]) -> ir.Value | None:
    """Add what stands for neighbours before ``place``, and return its result."""
    value = parts[0][0].node.inputs[0]
    name = parts[0][0].node.outputs[0].name
    for alike in zip(*parts, strict=True):
        first = alike[0]
        inputs = list(first.node.inputs)
        inputs[first.data] = value
        for index, (at, _, axis) in enumerate(first.held):
            inputs[at] = _side_by_side(edit, place, [each.held[index][1] for each in alike], axis)
        attributes = {key: each.value for key, each in first.node.attributes.items()}
        value = edit.insert(place, first.node.op_type, inputs, attributes, like=name)
    return value


def _side_by_side(edit: Edit, place: ir.Node, held: Sequence[_Constant], axis: int) -> ir.Value:
    """Add constants of several products as one of all their outputs."""
    arrays = [_array(each) for each in held]
    name = f"{place.outputs[0].name}:joined"
    value = edit.constant(np.concatenate(arrays, axis), name)
    found = [each.axis_of_parameters() for each in held if isinstance(each, ConstantLevels)]
    if not found:
        return value
    both = [(*each[:2], array.shape[axis]) for each, array in zip(found, arrays, strict=True) if each is not None]
    scales = np.concatenate([np.broadcast_to(scale.ravel(), count) for scale, _, count in both])
    zeros = np.concatenate([np.broadcast_to(zero.ravel(), count) for _, zero, count in both])
    alike = len(np.unique(scales)) == len(np.unique(zeros)) == 1
    given = [edit.constant(each[0] if alike else each, name) for each in (scales, zeros)]
    return edit.insert(place, "DequantizeLinear", [value, *given], {} if alike else {"axis": axis}, like=name)


JOINED = Rule("joined", "A Concat of outputs does not join Convs, Gemms or MatMuls of one tensor that differ in their "
              "constants alone", "each output is the same sum, of one product", _apply)
