"""Float operators between integers (QDQ form) become integer operators: ``Q(Conv(DQ(x), DQ(w)))`` becomes ``QConv``.

What is recognised is what ONNX Runtime runs in integers, or in floats with the same result but for a rounding (then
the operator is marked ``exact=False``). The rest stays as it is, with the reason, and is the host core's.
Source: ``qdq_selectors.cc`` of ONNX Runtime.
"""

from dataclasses import replace

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph, Node
from tilewright.compiler.graph.integer_moves import MOVES
from tilewright.compiler.graph.integer_ops import INTEGER, moving_node, reshape_behind, window_attrs, with_bounds
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.passes.recognise.fold_affine import ARITHMETIC
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.qdq_group import ALONE, Group, type_behind
from tilewright.compiler.passes.recognise.qdq_moves import SHUFFLES, clamped_behind, moved, multiplied, shuffled
from tilewright.compiler.passes.recognise.qdq_weights import scaled, transposed, weighted

_WEIGHTED = ("Conv", "Gemm", "MatMul")
_AVERAGES = ("AveragePool", "GlobalAveragePool", "ReduceMean")
_FLOAT = (*_WEIGHTED, "ConvTranspose", *_AVERAGES, *ALONE, *MOVES, *SHUFFLES, *ARITHMETIC, "BatchNormalization")


class RecogniseQdq(Pass):
    """Replace ``DequantizeLinear → operator → QuantizeLinear`` by one integer operator.

    Of what is left of the two, that at the model's border becomes Quantize and Dequantize.
    """

    def apply(self, graph: Graph) -> Graph:
        done: list[Node] = []
        absorbed: set[str] = set()
        for node in graph.nodes:
            if node.output in absorbed:
                continue
            try:
                graph, new, outputs = self._recognise(graph, node)
                absorbed |= outputs
            except UnsupportedNodeError as error:
                new = (node.with_(reason=error.reason),)
            done += new
        return _with_borders(graph.with_(nodes=tuple(done)))

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op not in INTEGER and not node.reason]:
            raise PassError(f"Only integer operators may be left without a reason, not {', '.join(left)}")

    def _recognise(self, graph: Graph, node: Node) -> tuple[Graph, tuple[Node, ...], set[str]]:
        """Return the graph with new types, what stands for ``node``, and the outputs of what that includes."""
        if node.op in INTEGER or node.reason:
            return graph, (node,), set()
        if node.op == "QuantizeLinear":
            graph, new = self._quantize(graph, node)
            return graph, (new,), set()
        if node.op == "DequantizeLinear":
            if node.inputs[0] not in graph.constants:
                graph = quantisation.with_types(graph, type_behind(graph, node))
            return graph, (node.with_(reason="its result is needed in float"),), set()
        if node.op in _FLOAT:
            group = Group(graph, node)
            graph, nodes = _recognised(group)
            return graph, nodes, group.outputs
        raise UnsupportedNodeError(node.name, node.op, "the datapath has no such operator", "replace it")

    @staticmethod
    def _quantize(graph: Graph, node: Node) -> tuple[Graph, Node]:
        """Take a QuantizeLinear outside of groups: at an input of the model, or behind a DequantizeLinear."""
        x, scale, zero = (*node.inputs, "")[:3]
        kind = quantisation.activation(graph, node, node.output, scale, zero)
        typed = quantisation.with_types(graph, kind)
        if x in graph.inputs and graph.tensors[x].dtype == "float32":
            return typed, Node("Quantize", (x,), node.output, {}, node.onnx_nodes)
        source = graph.producer(x)
        if source is not None and source.op == "DequantizeLinear":
            before = type_behind(graph, source)
            if before.same_quantisation(kind):
                return typed, with_bounds("QClamp", node, (before.name,), kind.dtype)
        return typed, node.with_(reason="its input is computed in float")


def _with_borders(graph: Graph) -> Graph:
    """Drop each DequantizeLinear that nothing reads; one that only makes an output of the model becomes Dequantize."""
    read = {name for node in graph.nodes for name in node.inputs}
    nodes = []
    for node in graph.nodes:
        if node.op == "DequantizeLinear" and node.output not in read:
            if node.output not in graph.outputs:
                continue
            if graph.tensors[node.inputs[0]].quantised:
                node = Node("Dequantize", node.inputs[:1], node.output, {}, node.onnx_nodes)
        nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


def _recognised(group: Group) -> tuple[Graph, tuple[Node, ...]]:
    """Return the graph with all types and constants, and what stands for a group: an operator and what is around it."""
    op = group.node.op
    if op in MOVES or op in SHUFFLES:
        return clamped_behind(group, *(moved(group) if op in MOVES else shuffled(group)))
    if op in ("BatchNormalization", *ARITHMETIC) and (found := scaled(group)) is not None:
        return found
    if op == "Mul" and group.clip is None:
        return multiplied(group)
    graph, node = _integer(group)
    if group.node.attrs.get("rounded", 0):
        node = node.with_attrs(exact=False)
    if group.clamps:
        node = group.clamped(node).with_attrs(exact=False)
    _, shape = inferred(graph, node)
    known = graph.tensors[node.output].shape or shape
    if len(known) != len(shape):
        return reshape_behind(graph, node, shape)
    # Of ceil_mode, ONNX's own inference has another idea than all that compute it.
    output = replace(graph.tensors[node.output], shape=shape)
    return graph.with_(tensors={**graph.tensors, node.output: output}), (node,)


def _integer(group: Group) -> tuple[Graph, Node]:
    node = group.node.with_(output=group.quantize.output)
    inputs = [group.data_input(name) for name in group.node.inputs[:2 if node.op == "Add" else 1]]
    if node.op in ("Sub", "Mul", "Div", "BatchNormalization"):
        raise group.refusal("the datapath has no such operator", "replace it")
    if any(tensor.dtype != group.kind.dtype for tensor in inputs):
        raise group.refusal("its tensors are int8 and uint8 mixed", "quantise all activations to one type")
    graph = quantisation.with_types(group.graph, *inputs, group.kind)
    x, dtype = inputs[0].name, group.kind.dtype
    if node.op in _WEIGHTED:
        return weighted(group, graph, node, inputs[0])
    if node.op == "ConvTranspose":
        return transposed(group, graph, node, inputs[0])
    if node.op == "Add":
        return graph, with_bounds("QAdd", node, (x, inputs[1].name), dtype)
    if node.op in _AVERAGES:
        return graph, _average(group, graph, node, x, dtype)
    if not inputs[0].same_quantisation(group.kind):
        raise group.refusal("its input and output have different scales or zero points",
                            "give them one, as onnxruntime.quantization does")
    return graph, moving_node(graph, node, x, dtype, *group.bounds(node))


def _average(group: Group, graph: Graph, node: Node, x: str, dtype: str) -> Node:
    if node.op == "ReduceMean":
        axes = node.attrs.get("axes")
        if len(node.inputs) > 1 and node.inputs[1]:
            axes = quantisation.constant(graph, node, node.inputs[1], "axes").ravel()
        rank = len(graph.tensors[x].shape or ())
        if rank != 4 or axes is None or {int(axis) % rank for axis in axes} != {2, 3}:
            raise group.refusal("it averages over other axes than height and width", "average over those")
        # ONNX Runtime has no integer kernel for it.
        return with_bounds("QAverage", node, (x,), dtype, exact=False)
    attrs = window_attrs(node) if node.op == "AveragePool" else {}
    return with_bounds("QAverage", node, (x,), dtype, **attrs)
