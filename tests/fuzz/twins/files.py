"""Rewritings of the file: the order of its nodes, its opset, functions of its own, data beside it."""

import onnx
from onnx import helper

from tests.fuzz.twins.draft import QUANTISATION, Draft, attribute

__all__ = ["external", "in_functions", "other_opset", "renamed", "reordered", "typed", "unordered"]

_OPSETS = (13, 24)
"""Lowest and highest that the two have; nothing that `_SAME` names has another meaning in one of them."""

_SAME = {
    "QuantizeLinear", "DequantizeLinear", "Conv", "ConvTranspose", "Relu", "Add", "Sub", "Mul", "Div", "MaxPool",
    "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "Concat", "Flatten", "Reshape", "Transpose", "Gemm", "MatMul",
    "Sigmoid", "Softmax", "Clip", "LeakyRelu", "Identity", "Dropout", "Cast", "QLinearConv", "QLinearMatMul", "Slice",
    "Constant", "Gather", "Softplus", "Neg", "Tanh", "Exp", "Sqrt", "Abs", "HardSigmoid", "Squeeze", "Unsqueeze"}

_LATER = {"HardSwish": 14}


def reordered(draft: Draft) -> int:
    """Shuffle the nodes, each behind what it reads."""
    nodes = list(draft.graph.node)
    draft.rng.shuffle(nodes)
    draft.order(nodes)
    return len(nodes)


def unordered(draft: Draft) -> int:
    """Shuffle the nodes, which ONNX does not allow and ONNX Runtime takes."""
    nodes = list(draft.graph.node)
    draft.rng.shuffle(nodes)
    copies = [onnx.NodeProto() for _ in nodes]
    for copy, node in zip(copies, nodes, strict=True):
        copy.CopyFrom(node)
    del draft.graph.node[:]
    draft.graph.node.extend(copies)
    return len(nodes)


def other_opset(draft: Draft) -> int:
    """State another version of ONNX's operators, one in which those of the model are the same."""
    choices = _versions(draft)
    if not choices:
        return 0
    _state(draft, draft.rng.choice(choices))
    return 1


def _state(draft: Draft, version: int) -> None:
    for each in draft.model.opset_import:
        if each.domain in ("", "ai.onnx"):
            each.version = version


def _versions(draft: Draft) -> list[int]:
    """Return the other versions of ONNX's operators in which those of the model are the same."""
    operators = {node.op_type for node in draft.graph.node if node.domain in ("", "ai.onnx")}
    lowest = max([_OPSETS[0], *(_LATER.get(op, 0) for op in operators)])
    choices = [version for version in range(lowest, _OPSETS[1] + 1) if version != draft.opset]
    if operators - _SAME - _LATER.keys() or draft.opset < _OPSETS[0] or any(
            each.name in ("output_dtype", "block_size", "saturate", "precision") for node in draft.graph.node
            for each in node.attribute):
        return []
    return choices


_TYPED_FROM = 21
"""The version from which on a Q says the type of its levels."""


def typed(draft: Draft) -> int:
    """Say the type of levels by ``output_dtype`` in place of a zero point that is none, in a version that has it."""
    versions = [each for each in (_versions(draft) or [draft.opset]) if each >= _TYPED_FROM]
    known = draft.constants()
    found = [node for node in draft.graph.node if node.op_type == "QuantizeLinear" and not node.domain and len(
        node.input) > 2 and node.input[2] in known and not known[node.input[2]].any() and not attribute(
            node, "output_dtype")]
    if not versions or not found:
        return 0
    _state(draft, draft.rng.choice(versions))
    chosen = draft.some(found)
    for node in chosen:
        kind = helper.np_dtype_to_tensor_dtype(known[node.input[2]].dtype)
        node.attribute.append(helper.make_attribute("output_dtype", int(kind)))
        node.input[:] = node.input[:2]
    return len(chosen)


_LOCAL = "twins"
"""Domain of a model's own functions."""

_FUNCTIONS_FROM = 8
"""Version of the format that has them."""


def in_functions(draft: Draft) -> int:
    """Put nodes of ONNX, and each Q with the DQ that alone reads it, into functions of the model."""
    readers, outputs, found = draft.readers(), draft.outputs, []
    for node in draft.graph.node:
        if (not node.domain or node.op_type in QUANTISATION) and node.op_type != "Constant" and all(
                node.input) and len(node.output) == 1 and not any(
                each.HasField("g") or each.graphs for each in node.attribute):
            behind = [reader for reader, _ in readers.get(node.output[0], ())]
            joins = node.op_type == "QuantizeLinear" and len(behind) == 1 and node.output[0] not in outputs \
                and behind[0].op_type == "DequantizeLinear" and all(behind[0].input)
            found.append([node, behind[0]] if joins and draft.rng.random() < 0.7 else [node])
    if not found or draft.model.ir_version < _FUNCTIONS_FROM:
        return 0
    chosen: list[list[onnx.NodeProto]] = []
    for body in draft.rng.sample(found, min(len(found), draft.rng.randint(1, 8))):
        if not any(node is other for each in chosen for other in each for node in body):
            chosen.append(body)
    draft.import_domain(_LOCAL)
    for body in chosen:
        inner = {name for node in body for name in node.output}
        inputs = list(dict.fromkeys(name for node in body for name in node.input if name not in inner))
        name, last = draft.fresh("function"), body[-1].output[0]
        draft.model.functions.append(helper.make_function(
            _LOCAL, name, inputs, [last], body, [each for each in draft.model.opset_import if each.domain != _LOCAL]))
        draft.add(name, inputs, last, output=last, domain=_LOCAL)
    draft.drop([node for body in chosen for node in body])
    return len(chosen)


def external(draft: Draft) -> int:
    """Put the data of constants into a file beside the model's."""
    draft.external = True
    return len(draft.graph.initializer)


def renamed(draft: Draft) -> int:
    """Give tensors within the model and nodes other names, and constants another order."""
    kept = {value.name for value in (*draft.graph.input, *draft.graph.output)} | {""}
    names = sorted({name for node in draft.graph.node for name in (*node.input, *node.output)} - kept)
    numbers = draft.rng.sample(range(10 * len(names) + 10), len(names))
    new = {name: f"t{number}" for name, number in zip(names, numbers, strict=True)}
    if kept & set(new.values()):
        return 0
    for node, number in zip(draft.graph.node, draft.rng.sample(range(10**6), len(draft.graph.node)), strict=True):
        node.name = f"n{number}"
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    tensors = []
    for tensor in draft.graph.initializer:
        copy = onnx.TensorProto()
        copy.CopyFrom(tensor)
        copy.name = new.get(copy.name, copy.name)
        tensors.append(copy)
    draft.rng.shuffle(tensors)
    del draft.graph.initializer[:], draft.graph.value_info[:]
    draft.graph.initializer.extend(tensors)
    return len(new)
