"""Recognition of operators of the QDQ form that only move integers, and of the product of two tensors."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import QClamp
from tilewright.compiler.graph.move_nodes import move_node
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxConcat,
    OnnxDepthToSpace,
    OnnxPad,
    OnnxSpaceToDepth,
    OnnxTranspose,
)
from tilewright.compiler.graph.qlinear_operators import OnnxQLinearMul
from tilewright.compiler.graph.value_tables import TableError
from tilewright.compiler.passes.recognise.element_images import in_memory
from tilewright.compiler.passes.recognise.function_tables import table_node
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.qdq.group import QdqGroup, dequantise_before, type_behind

__all__ = ["Shuffle", "clamped_behind", "moved", "multiplied", "shuffled"]

Shuffle = OnnxTranspose | OnnxDepthToSpace | OnnxSpaceToDepth
"""Operators that move elements one by one: the host core's, if nothing makes them a matter of addresses."""


def clamped_behind(group: QdqGroup, graph: Graph, nodes: tuple[Node, ...]) -> tuple[Graph, tuple[Node, ...]]:
    """Return ``nodes``, the last of which writes the group's result, with the clamp behind them that there is."""
    if group.clip is None or not group.clamps:
        return graph, nodes
    before = replace(group.kind, name=f"{group.kind.name}:unclamped")
    clamp = Node(QClamp().of_type(group.kind.dtype), (before.name,), group.kind.name)
    return graph.with_tensors(before), (*nodes[:-1], nodes[-1].with_(output=before.name), group.clamped(clamp))


def moved(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]]:
    """Return the integer operator of a move, and tables before it for inputs of another quantisation."""
    graph, node, tables = group.graph, group.node, []
    constants, inputs = {}, []
    for index, name in enumerate(node.inputs if isinstance(node.operator, OnnxConcat) else node.inputs[:1]):
        if (found := _constant_levels(group, name)) is None:
            inputs.append(group.data_input(name))
        else:
            inputs.append(replace(group.kind, name=f"{group.kind.name}:constant {index}", shape=found.shape))
            constants[inputs[-1].name] = in_memory(found, found.shape)
    if len(constants) == len(inputs):
        raise group.refusal("all that it joins is constant", "fold constants into the model, as onnxsim does")
    graph = graph.with_constants(constants).with_tensors(*(each for each in inputs if each.name in constants))
    graph = quantisation.with_types(graph, *inputs, group.kind)
    names = []
    for index, tensor in enumerate(inputs):
        if tensor.same_quantisation(group.kind):
            names.append(tensor.name)
            continue
        new = replace(group.kind, name=f"{group.kind.name}:input{index}", shape=tensor.shape)
        graph = graph.with_tensors(new)
        source = group.graph.producer(node.inputs[index])
        assert source is not None
        rescale = (source.with_(onnx_nodes=()),
                   group.quantize.with_(inputs=(source.output, *group.quantize.inputs[1:]), output=new.name,
                                       onnx_nodes=node.onnx_nodes))
        try:
            tables.append(table_node(graph, rescale, tensor, new))
        except TableError as error:
            raise group.refusal("ONNX Runtime does not change the scale of its inputs", "give them one") from error
        names.append(new.name)
    value = group.level(_padding(graph, node, node.operator)) if isinstance(node.operator, OnnxPad) else 0
    moved = move_node(graph, node, tuple(names), value).with_(output=group.kind.name)
    known = graph.tensors[moved.output].shape
    if known is not None and inferred(graph, moved)[1] != known:
        raise group.refusal(f"its result has the shape {list(known)}", "use another shape")
    return graph, (*tables, moved)


def _constant_levels(group: QdqGroup, name: str) -> np.ndarray | None:
    """Return the levels of a constant that a Concat joins, if they have the parameters of its result."""
    source = dequantise_before(group.graph, name)
    if source is None or not group.graph.all_constant(source.inputs) or not isinstance(
            group.node.operator, OnnxConcat) or not type_behind(group.graph, source).same_quantisation(group.kind):
        return None
    return group.graph.constants[source.inputs[0]]


def _padding(graph: Graph, node: Node, pad: OnnxPad) -> np.float32:
    """Return what a Pad puts around, a constant that may be quantised, as ONNX Runtime's quantiser writes it."""
    name = node.inputs[2] if len(node.inputs) > 2 else ""
    if (values := quantisation.fixed_numbers(graph, name)) is not None:
        graph = graph.with_constants({name: values})
    return np.float32(quantisation.number(graph, node, name, "value") if name else pad.value)


def shuffled(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]]:
    """Return the same operator on integers, for the host core."""
    x = group.data_input(group.node.inputs[0])
    if not x.same_quantisation(group.kind):
        raise group.refusal("its input and output have different scales or zero points", "give them one")
    graph = quantisation.with_types(group.graph, x, group.kind)
    new = group.node.with_(inputs=(x.name, *group.node.inputs[1:]), output=group.kind.name,
                          reason="the datapath cannot move single elements")
    return graph, (new,)


def multiplied(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]]:
    """Return a QLinearMul, which the host core computes from integers to integers; all as after ShiftUnsigned."""
    unsigned = group.kind.dtype == "uint8"
    graph, names, constants = group.graph, [], {}
    for index, name in enumerate(group.node.inputs):
        source = dequantise_before(graph, name)
        if source is None:
            raise group.refusal(f"its input {name!r} is float", "quantise every activation of the model")
        fixed = graph.constants.get(source.inputs[0])
        tensor = type_behind(graph, source)
        group.require_one_type(tensor)
        names.append(tensor.name)
        if fixed is None:
            graph = quantisation.with_types(graph, tensor)
        else:
            names[-1] = f"{group.kind.name}:factor{index}"
            constants[names[-1]] = (fixed.astype(np.int16) - 128 * unsigned).astype(np.int8)
        names += _parameters(tensor, f"{group.kind.name}:{index}", constants)
    names += _parameters(group.kind, group.kind.name, constants)
    graph = quantisation.with_types(graph, group.kind).with_constants(constants)
    new = group.node.with_(operator=OnnxQLinearMul({"unsigned": int(unsigned)}), inputs=tuple(names),
                          output=group.kind.name, reason="the datapath multiplies only by constants")
    return graph, (new,)


def _parameters(tensor: Tensor, prefix: str, constants: dict[str, np.ndarray]) -> tuple[str, str]:
    """Add scale and int8 zero point of a tensor to ``constants`` and return their names."""
    scale, zero = tensor.parameters
    constants[f"{prefix}:scale"] = np.array(scale, np.float32)
    constants[f"{prefix}:zero"] = np.array(zero - 128 * (tensor.dtype == "uint8"), np.int8)
    return f"{prefix}:scale", f"{prefix}:zero"
