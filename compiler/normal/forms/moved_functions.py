"""Functions of one tensor stand at once behind a product, before what only moves its elements."""

import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.values import WEIGHTS, constant, is_move, readers, source

__all__ = ["FUNCTIONS"]

_OF_ONE = frozenset({"Relu", "Clip", "LeakyRelu", "HardSwish", "HardSigmoid", "Sigmoid", "Tanh", "Elu", "Selu", "Celu",
                     "Softplus", "Softsign", "Mish", "Gelu", "ThresholdedRelu"})


def _apply(edit: Edit) -> int:
    return sum(_raised(edit, node) for node in edit.nodes() if not node.domain and node.op_type in _OF_ONE)


def _raised(edit: Edit, node: ir.Node) -> bool:
    """Let a function and the move before it change places; tell whether a product of levels is before the move."""
    moved = node.inputs[0]
    move = None if moved is None else moved.producer()
    if moved is None or move is None or not is_move(move) or move.op_type == "Concat" or len(move.outputs) > 1 \
            or len(readers(moved)) > 1 or edit.is_output(moved) \
            or any(constant(each) is None for each in node.inputs[1:] if each is not None):
        return False
    value = move.inputs[0]
    maker = None if value is None else value.producer()
    if value is None or maker is None or maker.domain or maker.op_type not in WEIGHTS or len(readers(value)) > 1 \
            or edit.is_output(value) or source(maker.inputs[0]) is None:
        return False
    attributes = {name: each.value for name, each in node.attributes.items()}
    inner = edit.insert(move, node.op_type, [value, *node.inputs[1:]], attributes, like=node.name)
    inner.type, inner.shape = value.type, value.shape
    move.replace_input_with(0, inner)
    edit.replace(node, moved)
    return True


FUNCTIONS = Rule("functions", "A function of one tensor stands before what moves the result of a product of levels",
                 "it treats every element alike", _apply)
