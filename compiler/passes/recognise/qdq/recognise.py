"""Float operators between integers (QDQ form) become integer operators: ``Q(Conv(DQ(x), DQ(w)))`` becomes ``QConv``.

What is recognised is what ONNX Runtime runs in integers, or in floats with the same result but for a rounding (then
the operator is marked ``exact=False``). The rest stays as it is, with the reason, and is the host core's.
Source: ``qdq_selectors.cc`` of ONNX Runtime.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import scales as quantisation
from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_nodes import moving_node, reshape_behind, standing_for
from tilewright.compiler.graph.integer_operators import Dequantize, IntegerOperator, QAdd, QAverage, QClamp, Quantize
from tilewright.compiler.graph.move_nodes import OnnxMove
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxAdd,
    OnnxArithmetic,
    OnnxAveragePool,
    OnnxBatchNormalization,
    OnnxConv,
    OnnxConvTranspose,
    OnnxDequantizeLinear,
    OnnxGemm,
    OnnxGlobalAveragePool,
    OnnxImageProduct,
    OnnxMatMul,
    OnnxMul,
    OnnxOperator,
    OnnxPRelu,
    OnnxQuantizeLinear,
    OnnxReduceMean,
    OnnxReduceSum,
    OnnxReshape,
    OnnxResize,
    OnnxSub,
)
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.passes.recognise.infer_shapes import inferred
from tilewright.compiler.passes.recognise.interpolate import interpolated
from tilewright.compiler.passes.recognise.qdq.broadcasts import by_tensor
from tilewright.compiler.passes.recognise.qdq.full_constants import scaled_by_elements
from tilewright.compiler.passes.recognise.qdq.group import Alone, QdqGroup, dequantise_before, type_behind
from tilewright.compiler.passes.recognise.qdq.moves import Shuffle, clamped_behind, moved, multiplied, shuffled
from tilewright.compiler.passes.recognise.qdq.products_of_images import multiplied_matrices
from tilewright.compiler.passes.recognise.qdq.rectifiers import rectified
from tilewright.compiler.passes.recognise.qdq.sums import summed
from tilewright.compiler.passes.recognise.qdq.sums_of_two import added_constant, summed_up
from tilewright.compiler.passes.recognise.qdq.weights import scaled, transposed, weighted

__all__ = ["RecogniseQdq"]

_Average = OnnxAveragePool | OnnxGlobalAveragePool
_Affine = OnnxBatchNormalization | OnnxArithmetic
_Sum = OnnxReduceMean | OnnxReduceSum
_Float = (OnnxConv | OnnxGemm | OnnxMatMul | OnnxConvTranspose | _Average | _Sum | Alone | OnnxMove | Shuffle | _Affine
          | OnnxPRelu | OnnxImageProduct)


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
        if left := [node.name for node in graph.nodes
                    if not isinstance(node.operator, IntegerOperator) and not node.reason]:
            raise PassError(f"Only integer operators may be left without a reason, not {', '.join(left)}")

    def _recognise(self, graph: Graph, node: Node) -> tuple[Graph, tuple[Node, ...], set[str]]:
        """Return the graph with new types, what stands for ``node``, and the outputs of what that includes."""
        if isinstance(node.operator, IntegerOperator) or node.reason:
            return graph, (node,), set()
        if isinstance(node.operator, OnnxQuantizeLinear):
            graph, new = self._quantise(graph, node)
            return graph, (new,), set()
        if isinstance(node.operator, OnnxDequantizeLinear):
            if node.inputs[0] not in graph.constants:
                graph = quantisation.with_types(graph, type_behind(graph, node))
            return graph, (node.with_(reason="its result is needed in float"),), set()
        if isinstance(node.operator, _Float):
            group = QdqGroup(graph, node)
            graph, nodes = _recognised(group)
            return graph, nodes, group.outputs
        raise UnsupportedNodeError(node.name, node.op, "the datapath has no such operator", "replace it")

    @staticmethod
    def _quantise(graph: Graph, node: Node) -> tuple[Graph, Node]:
        """Take a QuantizeLinear outside of groups: at an input of the model, or behind a DequantizeLinear."""
        x, scale, zero = (*node.inputs, "")[:3]
        kind = quantisation.activation(graph, node, node.output, scale, zero)
        typed = quantisation.with_types(graph, kind)
        if x in graph.inputs and graph.tensors[x].dtype == "float32":
            return typed, standing_for(node, Quantize(), x)
        if (source := dequantise_before(graph, x)) is not None:
            before = type_behind(graph, source)
            if before.same_quantisation(kind):
                shape = graph.tensors[before.name].shape or ()
                if len(shape) not in (2, 4) or shape[0] != 1:
                    # It changes no level, whatever the rank, and so is a move.
                    name = f"{node.output}:shape"
                    moved = node.with_(operator=OnnxReshape(), inputs=(before.name, name), reason="it moves nothing")
                    return typed.with_constants({name: np.array(shape, np.int64)}), moved
                return typed, standing_for(node, QClamp().of_type(kind.dtype), before.name)
        return typed, node.with_(reason="its input is computed in float")


def _with_borders(graph: Graph) -> Graph:
    """Drop each DequantizeLinear that nothing reads; one that only makes an output of the model becomes Dequantize."""
    read = {name for node in graph.nodes for name in node.inputs}
    nodes = []
    for node in graph.nodes:
        if isinstance(node.operator, OnnxDequantizeLinear) and node.output not in read:
            if node.output not in graph.outputs:
                continue
            if graph.tensors[node.inputs[0]].quantised:
                node = standing_for(node, Dequantize(), node.inputs[0])
        nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


def _recognised(group: QdqGroup) -> tuple[Graph, tuple[Node, ...]]:
    """Return the graph with all types and constants, and what stands for a group: an operator and what is around it."""
    operator = group.node.operator
    if isinstance(operator, OnnxResize) and operator.mode != "nearest":
        return clamped_behind(group, *_resized(group, operator))
    if isinstance(operator, OnnxMove | Shuffle):
        return clamped_behind(group, *(moved(group) if isinstance(operator, OnnxMove) else shuffled(group)))
    if isinstance(operator, _Affine) and (found := scaled(group) or (
            isinstance(operator, OnnxAdd | OnnxSub) and added_constant(group)) or scaled_by_elements(group)):
        return found
    if isinstance(operator, OnnxMul):
        if (found := by_tensor(group)) is not None:
            return found
        if group.clip is None:
            return multiplied(group)
    if isinstance(operator, OnnxPRelu):
        return rectified(group)
    if isinstance(operator, OnnxImageProduct):
        return multiplied_matrices(group, operator)
    if isinstance(operator, OnnxAdd | OnnxSub) and (found := summed_up(group)) is not None:
        return found
    graph, node = _integer(group)
    if isinstance(operator, OnnxOperator) and operator.rounded:
        node = node.with_operator(exact=False)
    if group.clamps:
        node = group.clamped(node).with_operator(exact=False)
    _, shape = inferred(graph, node)
    known = graph.tensors[node.output].shape or shape
    if len(known) != len(shape):
        return reshape_behind(graph, node, shape)
    # Of ceil_mode, ONNX's own inference has another idea than all that compute it.
    return graph.with_tensors(replace(graph.tensors[node.output], shape=shape)), (node,)


def _resized(group: QdqGroup, operator: OnnxResize) -> tuple[Graph, tuple[Node, ...]]:
    """Return the graph with the types of a linear or cubic Resize, and the integer operators that stand for it."""
    x = group.data_input(group.node.inputs[0])
    group.require_one_type(x)
    graph = quantisation.with_types(group.graph, x, group.kind)
    return interpolated(graph, group.node, operator, x, group.kind)


def _integer(group: QdqGroup) -> tuple[Graph, Node]:
    node = group.node.with_(output=group.quantize.output)
    operator, dtype = node.operator, group.kind.dtype
    inputs = [group.data_input(name) for name in node.inputs[:2 if isinstance(operator, OnnxAdd) else 1]]
    if isinstance(operator, _Affine) and not isinstance(operator, OnnxAdd):
        raise group.refusal("the datapath has no such operator", "replace it")
    group.require_one_type(*inputs)
    graph = quantisation.with_types(group.graph, *inputs, group.kind)
    x = inputs[0]
    match operator:
        case OnnxConv() | OnnxGemm() | OnnxMatMul():
            return weighted(group, graph, node, x)
        case OnnxConvTranspose():
            return transposed(group, graph, node, operator, x)
        case OnnxAdd():
            return graph, standing_for(node, QAdd().of_type(dtype), x.name, inputs[1].name)
        case OnnxAveragePool():
            average = QAverage(window=operator.window, counts_padding=bool(operator.count_include_pad))
            return graph, standing_for(node, average.of_type(dtype), x.name)
        case OnnxGlobalAveragePool():
            return graph, standing_for(node, QAverage().of_type(dtype), x.name)
        case OnnxReduceMean() | OnnxReduceSum():
            return summed(group, graph, node, x.name)
    if not x.same_quantisation(group.kind):
        raise group.refusal("its input and output have different scales or zero points",
                            "give them the same quantisation, as onnxruntime.quantization does")
    return graph, moving_node(graph, node, x.name, dtype, *group.bounds(node))
