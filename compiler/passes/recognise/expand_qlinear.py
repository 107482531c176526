"""QLinear operators in the other form: ``QLinearMul(a, …, b, …)`` becomes ``Q(Mul(DQ(a), DQ(b)))``.

So there is one recognition for what the datapath computes without an operator of the same name, and what it does not
compute at all becomes the host core's in float. The formulas are those of ONNX and of onnxruntime's
ContribOperators.md.
"""

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_names import onnx_operator
from tilewright.compiler.graph.onnx_operators import (
    OnnxConcat,
    OnnxDequantizeLinear,
    OnnxOperator,
    OnnxQuantizeLinear,
    type_name,
)
from tilewright.compiler.graph.qlinear_operators import (
    OnnxQGemm,
    OnnxQLinear,
    OnnxQLinearAdd,
    OnnxQLinearConcat,
    OnnxQLinearConv,
    OnnxQLinearLeakyRelu,
    OnnxQLinearMatMul,
    OnnxQLinearMul,
    OnnxQLinearSigmoid,
    OnnxQLinearSoftmax,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.scales import constant

__all__ = ["EXPANDED", "ExpandQLinear", "expanded"]

_EXPANDED = (OnnxQLinearMul, OnnxQLinearConcat, OnnxQLinearSigmoid, OnnxQLinearLeakyRelu, OnnxQLinearSoftmax)

EXPANDED = tuple(map(type_name, _EXPANDED))
"""Names of the operators with no integer operator of their own."""


class ExpandQLinear(Pass):
    """Replace the operators of ``EXPANDED`` by DequantizeLinear, the float operator and QuantizeLinear.

    So are sums of two tensors of which one is broadcast.
    """

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, _EXPANDED) or (isinstance(node.operator, OnnxQLinearAdd)
                                                        and _broadcasts(graph, node)):
                graph = expanded(graph, node, node.operator)
        return graph


def _broadcasts(graph: Graph, node: Node) -> bool:
    """Tell whether the operands of a sum, ``node``, are two computed tensors of different shapes."""
    names = node.inputs[0:4:3]
    if any(name in graph.constants or name not in graph.tensors for name in names):
        return False
    shapes = {graph.tensors[name].shape for name in names}
    return len(shapes) > 1 and None not in shapes


def expanded(graph: Graph, node: Node, operator: OnnxQLinear, reason: str = "") -> Graph:
    """Return ``graph`` with ``node`` in the other form; ``reason`` tells why the datapath does not compute it."""
    build = _Expansion(graph, node)
    i = (*node.inputs, *("",) * (9 - len(node.inputs)))
    if operator.channels_last:
        raise UnsupportedNodeError(node.name, node.op, "its tensors are NHWC", "export it with NCHW tensors")
    output = i[3:5]
    match operator:
        case OnnxQLinearConcat():
            if len(node.inputs) % 3 != 2:
                raise BadModelError(f"Node {node.name!r} (QLinearConcat) must have two inputs and three for each "
                                    f"tensor, not {len(node.inputs)}")
            inputs = [build.real(node.inputs[k:k + 3]) for k in range(2, len(node.inputs), 3)]
            output = i[0:2]
        case OnnxQLinearConv():
            inputs, output = build.weighted(i, 0, i[8]), i[6:8]
        case OnnxQLinearMatMul():
            inputs, output = build.weighted(i, 1, ""), i[6:8]
        case OnnxQGemm():
            inputs, output = build.weighted(i, 0 if operator.transB else 1, i[6]), i[7:9]
        case OnnxQLinearAdd() | OnnxQLinearMul():
            inputs, output = [build.real(i[0:3]), build.real(i[3:6])], i[6:8]
        case _:
            inputs = [build.real(i[0:3])]
    attributes = {name: value for name, value in operator.attributes.items() if name != "channels_last"}
    return build.finish(onnx_operator(operator.FLOAT, attributes), inputs, output, reason)


class _Expansion:
    """Nodes, types and constants that come in place of one node."""

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph, self.node = graph, node
        self.nodes: list[Node] = []
        self.types: dict[str, Tensor] = {}
        self.constants: dict[str, np.ndarray] = {}

    def new(self, what: str) -> str:
        """Return a name that no tensor has."""
        return f"{self.node.output}:{what}{len(self.types) + len(self.constants)}"

    def constant(self, value: np.ndarray) -> str:
        """Add a constant and return its name."""
        name = self.new("constant")
        self.constants[name] = value
        return name

    def real(self, parameters: tuple[str, ...], axis: int = 1) -> str:
        """Add a DequantizeLinear of (values, scale, zero point) and return its result."""
        name, source = self.new("real"), parameters[0]
        shape = self.graph.constants[source].shape if source in self.graph.constants else \
            self.graph.tensors[source].shape
        self.types[name] = Tensor(name, shape, "float32")
        inputs = tuple(parameters) if parameters[2] else tuple(parameters[:2])
        self.nodes.append(Node(OnnxDequantizeLinear({"axis": axis}), inputs, name))
        return name

    def weighted(self, inputs: tuple[str, ...], axis: int, bias: str) -> list[str]:
        """Add DequantizeLinear of x, of weights with output channels along ``axis``, and of a bias if there is one."""
        found = [self.real(inputs[0:3]), self.real(inputs[3:6], axis)]
        if bias:
            scale = self.constant(constant(self.graph, self.node, inputs[1], "scale").ravel()
                                  * constant(self.graph, self.node, inputs[4], "scale").ravel())
            found.append(self.real((bias, scale, ""), 0))
        return found

    def finish(self, operator: OnnxOperator, inputs: list[str], output: tuple[str, ...], reason: str) -> Graph:
        """Return the graph with the new nodes in the old one's place."""
        old, graph = self.node, self.graph
        real = self.new("real")
        self.types[real] = Tensor(real, graph.tensors[old.output].shape, "float32")
        scale, zero = output
        if not scale:
            raise UnsupportedNodeError(old.name, old.op, "its output is float", "quantise the output too")
        if not zero:
            first = old.inputs[2 if isinstance(operator, OnnxConcat) else 0]
            zero = self.constant(np.zeros((), graph.tensors[first].dtype or "uint8"))
        self.nodes += [Node(operator, tuple(inputs), real, old.onnx_nodes, reason),
                       Node(OnnxQuantizeLinear(), (real, scale, zero), old.output)]
        graph = graph.with_tensors(*self.types.values()).with_constants(self.constants)
        return graph.replaced((old,), *self.nodes)
