"""Channels in blocks, the layout of ONNX Runtime's optimised models, go away from what only moves and pools."""

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import attribute

__all__ = ["LAYOUTS"]

_DOMAIN = "com.microsoft.nchwc"
_POOLS = ("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool")
_INTO, _OUT_OF = "ReorderInput", "ReorderOutput"


def _apply(edit: Edit) -> int:
    found = [node for node in edit.nodes() if node.domain == _DOMAIN]
    # Convolutions there have weights in blocks too: such a model stays as it is, and is refused by their name.
    if not all(node.op_type in (*_POOLS, _INTO, _OUT_OF) for node in found):
        return 0
    for node in found:
        if node.op_type in _POOLS:
            node.domain = ""
            continue
        turn = [0, 3, 1, 2] if node.op_type == _INTO else [0, 2, 3, 1]
        attributes = {"perm": turn} if attribute(node, "channels_last", 0) else {}
        old = node.outputs[0]
        new = edit.insert(node, "Transpose" if attributes else "Identity", node.inputs[:1], attributes)
        new.type, new.shape = old.type, old.shape if attributes else None
        edit.replace(node, new)
    return len(found)


LAYOUTS = Rule("layouts", "Pooling between ReorderInput and ReorderOutput is ONNX's own, with channels first",
               "the two only move elements, there and back (nchwc_ops.h of ONNX Runtime)", _apply)
