"""An average or a maximum of whole images reads them as they are, not with their pixels in rows of another length."""

import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.inserted_moves import reshaped
from tilewright.compiler.normal.ranks import sizes_of
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import (
    attribute,
    constant,
    is_dequantise,
    is_quantise,
    same_parameters,
    source,
)

__all__ = ["WHOLE"]

_OF_ALL = ("GlobalAveragePool", "GlobalMaxPool")
_VIEWS = ("Reshape", "Squeeze", "Unsqueeze")
_LEAST_RANK = 3


def _apply(edit: Edit) -> int:
    return sum(_as_it_was(edit, node) for node in edit.nodes() if not node.domain and node.op_type in _OF_ALL)


def _as_it_was(edit: Edit, node: ir.Node) -> bool:
    """Let a pooling of whole images read what a view of pixels reads; tell whether it reads such a view."""
    view = _view(node.inputs[0])
    if view is None or view.inputs[0] is None:
        return False
    before = sizes_of(view.inputs[0])
    after = None if before is None else _behind(view, before)
    if before is None or after is None or min(len(before), len(after)) < _LEAST_RANK or before[:2] != after[:2]:
        return False
    kept = [each for each in before[:2] if each is not None]
    if len(kept) < len(before[:2]):
        return False
    if len(before) == len(after):
        node.replace_input_with(0, view.inputs[0])
        return True
    whole = edit.insert(node, node.op_type, [view.inputs[0]], like=node.name)
    new = reshaped(edit, node, whole, [*kept, *[1] * (len(after) - len(kept))])
    new.type, new.shape = node.outputs[0].type, node.outputs[0].shape
    edit.replace(node, new)
    return True


def _behind(view: ir.Node, before: list[int | None]) -> list[int | None] | None:
    """Return the dimensions of what a view makes, -1 for what is left of them; None if nobody states them."""
    target = constant(view.inputs[1]) if view.op_type == "Reshape" and len(view.inputs) > 1 else None
    if target is None or attribute(view, "allowzero", 0) or (target[:2] < 0).any():
        return sizes_of(view.outputs[0])
    return [before[axis] if each == 0 and axis < len(before) else int(each) for axis, each in enumerate(target)]


def _view(x: ir.Value | None) -> ir.Node | None:
    """Return the view that makes ``x``, perhaps of levels, which a Q and a DQ hand on behind it; None of another."""
    levels = None if x is None else x.producer()
    quantise = None if not is_dequantise(levels) or levels.inputs[0] is None else levels.inputs[0].producer()
    if x is not None and is_quantise(quantise) and same_parameters(quantise, levels):
        view = _view(quantise.inputs[0])
        return view if view is not None and same_parameters(source(view.inputs[0]), levels) else None
    maker = None if x is None else x.producer()
    return maker if maker is not None and not maker.domain and maker.op_type in _VIEWS else None


WHOLE = Rule("whole images", "A GlobalAveragePool or GlobalMaxPool reads an image, not a view that only counts its "
             "pixels otherwise", "each output is of all pixels of a channel, in the same order", _apply)
