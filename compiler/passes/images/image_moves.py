"""Concatenation, slices, padding, resizing and means along axes of tensors that have become images."""

import numpy as np

from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxConcat, OnnxOperator, OnnxPad, OnnxReduceMean, OnnxResize
from tilewright.compiler.network.image_forms import Form
from tilewright.compiler.passes.images.state import ImageState

__all__ = ["moved"]


def moved(state: ImageState, node: Node, data: tuple[str, ...], form: Form) -> bool:
    """Add such a node on images in ``form`` and tell whether that is possible; ``data`` are its operands."""
    rank = len(state.shape(data[0]) or ())
    if not rank or any(not form.suits(state.shape(name)) or len(state.shape(name) or ()) != rank or state.fixed(name)
                       for name in data):
        return False
    match node.operator:
        case OnnxConcat():
            return _concatenated(state, node, data, form)
        case OnnxPad():
            return _padded(state, node, form, rank)
        case OnnxResize():
            return _resized(state, node, form, rank)
        case OnnxReduceMean():
            return _averaged(state, node, form, rank)
        case _:
            return _sliced(state, node, form, rank)


def _concatenated(state: ImageState, node: Node, data: tuple[str, ...], form: Form) -> bool:
    assert isinstance(node.operator, OnnxOperator)
    rank = len(state.shape(data[0]) or ())
    axis = form.axis(int(node.operator.attributes.get("axis", 1)), rank)
    if axis == 0:
        return False
    images = {name: state.image(name, form) for name in data}
    inputs = tuple(images.get(name, name) for name in node.inputs)
    state.add(node, node.operator.with_attributes(axis=axis), inputs, form)
    return True


def _padded(state: ImageState, node: Node, form: Form, rank: int) -> bool:
    pads = _list(state, node, 1)
    axes = _list(state, node, 3) or tuple(range(rank))
    if pads is None or len(pads) != 2 * len(axes):
        return False
    moved_pads = [0] * 8
    for index, axis in enumerate(axes):
        moved_pads[form.axis(axis, rank)] = pads[index]
        moved_pads[form.axis(axis, rank) + 4] = pads[index + len(axes)]
    assert isinstance(node.operator, OnnxOperator)
    state.add(node, node.operator, (state.image(node.inputs[0], form), state.integers(
        node.output, "pads", tuple(moved_pads)), *node.inputs[2:3]), form)
    return True


def _sliced(state: ImageState, node: Node, form: Form, rank: int) -> bool:
    starts = _list(state, node, 1)
    axes = _list(state, node, 3) or tuple(range(len(starts or ())))
    if starts is None or len(axes) != len(starts):
        return False
    assert isinstance(node.operator, OnnxOperator)
    names = state.integers(node.output, "axes", tuple(form.axis(axis, rank) for axis in axes))
    state.add(node, node.operator, (state.image(node.inputs[0], form), *node.inputs[1:3], names, *node.inputs[4:]),
              form)
    return True


def _resized(state: ImageState, node: Node, form: Form, rank: int) -> bool:
    assert isinstance(node.operator, OnnxResize)
    inputs = list(node.inputs)
    for index in range(1, len(inputs)):
        values = state.graph.constants.get(inputs[index])
        if index != 1 and values is not None and values.size == rank:
            name, whole = f"{node.output}:{index} of its image", np.ones(4, values.dtype)
            whole[[form.axis(axis, rank) for axis in range(rank)]] = values
            state.constants[name] = whole
            inputs[index] = name
        elif inputs[index]:
            return False
    if node.operator.axes is not None:
        return False
    inputs[0] = state.image(inputs[0], form)
    state.add(node, node.operator, tuple(inputs), form)
    return True


def _averaged(state: ImageState, node: Node, form: Form, rank: int) -> bool:
    """Add a mean over all of an image, whose axes may be dropped."""
    assert isinstance(node.operator, OnnxReduceMean)
    axes = node.operator.axes if len(node.inputs) < 2 or not node.inputs[1] else _list(state, node, 1)
    shape = form.shape(state.shape(node.inputs[0]) or ())
    if axes is None or {form.axis(axis, rank) for axis in axes} | {a for a in (2, 3) if shape[a] == 1} != {2, 3}:
        return False
    operator = OnnxReduceMean({"axes": (2, 3), "keepdims": node.operator.keepdims})
    x = state.image(node.inputs[0], form)
    if node.operator.keepdims:
        state.add(node, operator, (x,), form)
        return True
    if state.shape(node.output) != (1, shape[1]):
        return False
    state.nodes.append(node.with_(operator=operator, inputs=(x,)))
    return True


def _list(state: ImageState, node: Node, position: int) -> tuple[int, ...] | None:
    """Return a constant list of integers that is an input."""
    name = node.inputs[position] if len(node.inputs) > position else ""
    if not name or name not in state.graph.constants:
        return None
    return tuple(int(each) for each in state.graph.constants[name].ravel())
