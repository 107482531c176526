"""QLinear operators in the other form: ``QLinearMul(a, …, b, …)`` becomes ``Q(Mul(DQ(a), DQ(b)))``.

So there is one recognition for what the datapath computes without an operator of the same name, and what it does not
compute at all becomes the host core's in float. The formulas are those of ONNX and of onnxruntime's
ContribOperators.md.
"""

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedNodeError
from tilewright.compiler.graph.graph import Graph, Node, Tensor
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.scales import constant

EXPANDED = ("QLinearMul", "QLinearConcat", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")
"""Operators with no integer operator of their own."""

_WITH_WEIGHTS = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul", "QGemm": "Gemm"}


class ExpandQLinear(Pass):
    """Replace the operators of ``EXPANDED`` by DequantizeLinear, the float operator and QuantizeLinear."""

    def apply(self, graph: Graph) -> Graph:
        for node in [node for node in graph.nodes if node.op in EXPANDED]:
            graph = expanded(graph, node)
        return graph


def expanded(graph: Graph, node: Node, reason: str = "") -> Graph:
    """Return ``graph`` with ``node`` in the other form; ``reason`` tells why the datapath does not compute it."""
    build = _Expansion(graph, node)
    i = (*node.inputs, *("",) * (9 - len(node.inputs)))
    op, attrs = node.op.removeprefix("QLinear"), {k: v for k, v in node.attrs.items() if k != "channels_last"}
    if node.attrs.get("channels_last", 0):
        raise UnsupportedNodeError(node.name, node.op, "its tensors are NHWC", "export it with NCHW tensors")
    output = i[3:5]
    if node.op == "QLinearConcat":
        if len(node.inputs) % 3 != 2:
            raise BadModelError(f"Node {node.name!r} (QLinearConcat) must have two inputs and three for each tensor, "
                                f"not {len(node.inputs)}")
        inputs = [build.real(node.inputs[k:k + 3]) for k in range(2, len(node.inputs), 3)]
        output = i[0:2]
    elif node.op in _WITH_WEIGHTS:
        op = _WITH_WEIGHTS[node.op]
        axis = 0 if op == "Conv" or node.attrs.get("transB", 0) else 1
        inputs = [build.real(i[0:3]), build.real(i[3:6], axis)]
        bias = {"Conv": i[8], "Gemm": i[6], "MatMul": ""}[op]
        output = i[7:9] if op == "Gemm" else i[6:8]
        if bias:
            scale = build.constant(constant(graph, node, i[1], "scale").ravel()
                                   * constant(graph, node, i[4], "scale").ravel())
            inputs.append(build.real((bias, scale, ""), 0))
    elif node.op in ("QLinearAdd", "QLinearMul"):
        inputs, output = [build.real(i[0:3]), build.real(i[3:6])], i[6:8]
    else:
        inputs = [build.real(i[0:3])]
    return build.finish(op, inputs, attrs, output, reason)


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
        self.nodes.append(Node("DequantizeLinear", inputs, name, {"axis": axis}, ()))
        return name

    def finish(self, op: str, inputs: list[str], attrs: dict[str, object], output: tuple[str, ...],
               reason: str) -> Graph:
        """Return the graph with the new nodes in the old one's place."""
        old, graph = self.node, self.graph
        real = self.new("real")
        self.types[real] = Tensor(real, graph.tensors[old.output].shape, "float32")
        scale, zero = output
        if not scale:
            raise UnsupportedNodeError(old.name, old.op, "its output is float", "quantise the output too")
        if not zero:
            zero = self.constant(np.zeros((), graph.tensors[old.inputs[2 if op == "Concat" else 0]].dtype or "uint8"))
        self.nodes += [Node(op, tuple(inputs), real, attrs, old.onnx_nodes, reason),
                       Node("QuantizeLinear", (real, scale, zero), old.output, {}, ())]
        nodes = [new for node in graph.nodes for new in (self.nodes if node is old else (node,))]
        types = dict(graph.tensors) | self.types
        return graph.with_(nodes=tuple(nodes), tensors=types).with_constants(self.constants)
