"""Operators on integers that stand where no integer form is alike become DQ, the operator on floats, and Q."""

import numpy as np
import onnx_ir as ir

from tilewright.compiler.normal.edit import Edit
from tilewright.compiler.normal.folding import folds
from tilewright.compiler.normal.rule import Rule
from tilewright.compiler.normal.rules.storage import storage_of
from tilewright.compiler.normal.values import attribute, constant, is_constant

__all__ = ["EXPAND", "EXPAND_ALL"]

_BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
_TRIPLES = {"QLinearConv": 2, "QLinearMatMul": 2, "QGemm": 2, "QLinearAdd": 2, "QLinearMul": 2, "QLinearSigmoid": 1,
            "QLinearLeakyRelu": 1, "QLinearAveragePool": 1, "QLinearGlobalAveragePool": 1, "QLinearSoftmax": 1}
"""Operators, and how many tensors with scale and zero point each takes first; QLinearConcat takes any number."""

_ON_INTEGERS = ("QLinearConv", "QLinearMatMul")
"""Operators that the host core computes as they are, on integers, where the datapath does not."""

_POOL = "NhwcMaxPool"
"""MaxPool of levels with channels last."""

_RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Gather", "Expand")
_LAYOUT = ("channels_last", "opset")
_SOFTMAX_OPSET = 13


def _apply(edit: Edit) -> int:
    mixed = _mixed(edit)
    return sum(_turned_pool(edit, node) if node.op_type == _POOL else _expanded(edit, node)
               for node in edit.nodes() if node.op_type == _POOL or _expands(edit, node, mixed))


def _apply_all(edit: Edit) -> int:
    return sum(_expanded(edit, node) for node in edit.nodes() if _expands_wholly(node, edit.opset))


def _expands_wholly(node: ir.Node, opset: int) -> bool:
    """Tell whether an integer operator is one on floats between DQ and Q to the compiler, whatever is around it.

    Of products, those by constant weights are: others stay, since the core computes them on integers.
    """
    if node.op_type not in _TRIPLES and node.op_type != "QLinearConcat":
        return False
    if node.op_type == "QLinearSoftmax":
        return _alike(node, opset)
    if node.op_type in _ON_INTEGERS:
        weights = constant(node.inputs[3])
        return all(each is None or is_constant(each) for each in node.inputs[1:]) and weights is not None and (
            weights.ndim >= 2 if node.op_type == "QLinearMatMul" else weights.ndim in (3, 4))
    return True


def _alike(node: ir.Node, opset: int) -> bool:
    """Tell whether a QLinearSoftmax means what the model's own Softmax does: before opset 13, all axes from one on."""
    stated = attribute(node, "opset", opset)
    rank = None if node.inputs[0] is None or node.inputs[0].shape is None else len(node.inputs[0].shape)
    last = attribute(node, "axis", 1 if stated < _SOFTMAX_OPSET else -1) in (-1, None if rank is None else rank - 1)
    return last or (stated < _SOFTMAX_OPSET) == (opset < _SOFTMAX_OPSET)


def _mixed(edit: Edit) -> bool:
    """Tell whether activations of the model are of both 8-bit types, or have their channels last somewhere."""
    if any(node.op_type in _TRIPLES and attribute(node, "channels_last", 0) for node in edit.graph):
        return True     # Transposes find their inverses through operators on floats.
    found = {kind for node in edit.graph if node.op_type in _TRIPLES or node.op_type == "QLinearConcat"
             for kind in _types(node)}
    return len(found) > 1 or (bool(found) and storage_of(edit) is not None) or _differs(edit, found)


def _differs(edit: Edit, found: set[np.dtype]) -> bool:
    """Tell whether the one type of the QLinear operators is not the one of Q and DQ."""
    for node in edit.graph:
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and not is_constant(node.inputs[0]) \
                and len(node.inputs) > 2:
            zero = node.inputs[2]
            kind = None if zero is None or zero.const_value is None else np.dtype(zero.const_value.dtype.numpy())
            if found and kind in _BYTES and kind not in found:
                return True
    return False


def _types(node: ir.Node) -> set[np.dtype]:
    """Return the 8-bit types of what a node takes first and of what it gives."""
    inputs = [*node.inputs, *(None,) * 9]
    if node.op_type == "QLinearConcat":
        zeros = [inputs[1], *inputs[4:len(node.inputs):3]]
    else:
        last = {"QGemm": 8, "QLinearConv": 7, "QLinearMatMul": 7, "QLinearAdd": 7, "QLinearMul": 7}.get(node.op_type, 4)
        zeros = [inputs[2], inputs[last]]
    found = (constant(each) for each in zeros)
    return {each.dtype for each in found if each is not None and each.dtype in _BYTES}


def _expands(edit: Edit, node: ir.Node, mixed: bool) -> bool:
    if node.op_type not in _TRIPLES and node.op_type != "QLinearConcat":
        return False
    if node.op_type == "QLinearSoftmax" and min(attribute(node, "opset", 0), edit.opset) < _SOFTMAX_OPSET:
        return False
    if attribute(node, "channels_last", 0):
        return node.op_type in ("QLinearConv", "QLinearAveragePool", "QLinearGlobalAveragePool")
    by_constant = node.op_type in ("QLinearAdd", "QLinearMul") and any(is_constant(each) for each in node.inputs[0:4:3])
    return mixed or by_constant


def _expanded(edit: Edit, node: ir.Node) -> bool:
    """Replace a node by its float form between DQ and Q; tell whether it has one, and its constants are known."""
    if any(_is_to_fold(each) for each in node.inputs):
        return False
    name, x = node.op_type.removeprefix("QLinear").removeprefix("Q"), list(node.inputs)
    bias = None
    if name == "Concat":
        to, data = x[:2], x[2:]
    else:
        count = 3 * _TRIPLES[node.op_type]
        data, rest = x[:count], x[count:]
        if name == "Gemm":
            bias, to = (rest[0] if rest else None), rest[1:3]
        elif name == "Conv":
            to, bias = rest[:2], (rest[2] if len(rest) > 2 else None)
        else:
            to = rest[:2]
    to = [*to, None, None][:2]
    like = _zero_like(data)
    absent = any(each is None for each in (*data[0::3], *data[1::3]))
    if (to[0] is None and name != "Gemm") or len(data) % 3 or absent or like is None:
        return False
    if to[0] is not None and to[1] is None:
        to[1] = edit.constant(np.zeros((), like), f"{node.outputs[0].name}:zero")
    turned = bool(attribute(node, "channels_last", 0))
    rank = _rank(node, data)
    if turned:
        data[0] = _channels_first(edit, node, rank)
    floats = [_real(edit, node, name, data[index:index + 3], index) for index in range(0, len(data), 3)]
    if bias is not None:
        real = _bias(edit, node, bias, data)
        if real is None:
            return False
        floats.append(real)
    value = edit.insert(node, name, floats, like=node.name or node.outputs[0].name)
    maker = value.producer()
    assert maker is not None
    maker.attributes.update({key: each for key, each in node.attributes.items() if key not in _LAYOUT})
    old = node.outputs[0]
    new = value if to[0] is None else edit.insert(node, "QuantizeLinear", [value, *to])
    if turned:
        new.type = old.type
        new = edit.insert(node, "Transpose", [new], {"perm": [0, *range(2, rank), 1]})
    new.type, new.shape = old.type, old.shape
    edit.replace(node, new)
    maker.name = node.name
    return True


def _is_to_fold(value: ir.Value | None) -> bool:
    """Tell whether a value is computed of constants alone, and so will be one."""
    maker = None if value is None else value.producer()
    return maker is not None and folds(maker) and all(each is None or is_constant(each) for each in maker.inputs)


def _turned_pool(edit: Edit, node: ir.Node) -> bool:
    """Replace an ``NhwcMaxPool`` by a MaxPool between two Transposes."""
    rank, old = _rank(node, []), node.outputs[0]
    new = edit.insert(node, "MaxPool", [_channels_first(edit, node, rank)], like=node.name or old.name)
    maker = new.producer()
    assert maker is not None
    maker.attributes.update(node.attributes)
    new.type = old.type
    new = edit.insert(node, "Transpose", [new], {"perm": [0, *range(2, rank), 1]})
    new.type, new.shape = old.type, old.shape
    edit.replace(node, new)
    return True


def _channels_first(edit: Edit, node: ir.Node, rank: int) -> ir.Value:
    """Add the Transpose of a node's first input from channels last."""
    found = edit.insert(node, "Transpose", node.inputs[:1], {"perm": [0, rank - 1, *range(1, rank - 1)]})
    found.type = None if node.inputs[0] is None else node.inputs[0].type
    return found


def _rank(node: ir.Node, data: list[ir.Value | None]) -> int:
    """Return the rank of what a node takes first; 4 where nothing before it tells.

    Its weights, window or shape tell it, or those of what makes it from tensors of its own rank.
    """
    weights = data[3] if node.op_type == "QLinearConv" and len(data) > 3 else None
    if weights is not None and weights.const_value is not None:
        return len(weights.const_value.shape)
    window, maker = attribute(node, "kernel_shape", ()), node
    while not window and maker is not None and maker.inputs and maker.inputs[0] is not None:
        if maker.inputs[0].shape is not None and maker.op_type not in _RESHAPES:
            return len(maker.inputs[0].shape)
        before = maker.inputs[0].producer()
        if before is None or before.op_type in _RESHAPES:
            return 4
        if turn := attribute(before, "perm"):
            return len(turn)
        window, maker = attribute(before, "kernel_shape", ()), before
    return len(window) + 2 if window else 4


def _zero_like(data: list[ir.Value | None]) -> np.dtype | None:
    """Return the type of the levels that an operator takes first."""
    zero = data[2] if len(data) > 2 else None
    if zero is not None and zero.const_value is not None:
        return np.dtype(zero.const_value.dtype.numpy())
    first = data[0]
    return None if first is None or first.dtype is None else np.dtype(first.dtype.numpy())


def _real(edit: Edit, node: ir.Node, name: str, given: list[ir.Value | None], index: int) -> ir.Value:
    """Add the DQ of one operand; of weights the scales lie along their output channels."""
    levels = given[0]
    assert levels is not None
    scale = constant(given[1])
    axis = {}
    if index == 3 and scale is not None and scale.ndim and name in ("Conv", "Gemm", "MatMul"):
        rank = len(levels.const_value.shape) if levels.const_value is not None else 2
        last = 1 if name == "Gemm" and not attribute(node, "transB", 0) else rank - 1 if name == "MatMul" else 0
        axis = {"axis": last}
    return edit.insert(node, "DequantizeLinear", given if given[2] is not None else given[:2], axis, like=levels.name)


def _bias(edit: Edit, node: ir.Node, bias: ir.Value, data: list[ir.Value | None]) -> ir.Value | None:
    """Add the DQ of an int32 bias, which counts in input scale · weight scale."""
    scales = constant(data[1]), constant(data[4])
    if scales[0] is None or scales[1] is None or not is_constant(bias):
        return None
    steps = np.asarray(scales[0].ravel()[:1] * scales[1].ravel(), np.float32)
    steps = steps if steps.size > 1 else steps.reshape(())
    return edit.insert(node, "DequantizeLinear", [
        bias, edit.constant(steps, f"{bias.name}:scale"),
        edit.constant(np.zeros(steps.shape, np.int32), f"{bias.name}:zero")], {"axis": 0} if steps.ndim else {},
        like=bias.name)


EXPAND_ALL = Rule("expand", "Integer operators but for products of two computed tensors are operators on floats "
                  "between DQ and Q", "that is their definition (ONNX; ContribOperators.md of ONNX Runtime)",
                  _apply_all)
"""The compiler's rule in the place of EXPAND: behind it there is one form of each operator."""

EXPAND = Rule("expand", "QLinear operators of mixed types, with channels last, or of a constant operand are operators "
              "on floats between DQ and Q; NhwcMaxPool is MaxPool between Transposes",
              "that is their definition (ONNX; ContribOperators.md of ONNX Runtime), and ONNX Runtime fuses it again",
              _apply)
