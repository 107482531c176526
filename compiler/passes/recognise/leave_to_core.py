"""Prepare the remaining operators for the host core: ``DequantizeLinear(constant)`` becomes a float constant.

Tensors that were uint8 in the model are int8 by now, 128 less. What reads or writes them on the core does it with a
zero point that is 128 less too, or only moves them.
"""

from dataclasses import replace

import numpy as np

from tilewright.compiler.graph.core_operators import CoreNormalisation
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import IntegerOperator
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxMoving, OnnxPosition, OnnxQuantizeLinear
from tilewright.compiler.graph.qlinear_operators import OnnxQLinearMul
from tilewright.compiler.graph.rewrite import Pass, PassError
from tilewright.compiler.graph.scales import dequantised

__all__ = ["LeaveToCore"]

_Quantisation = OnnxQuantizeLinear | OnnxDequantizeLinear
_Known = IntegerOperator | OnnxMoving | OnnxPosition | _Quantisation | OnnxQLinearMul | CoreNormalisation
"""Operators that take tensors of the model's uint8 as they are by now: 128 less."""



class LeaveToCore(Pass):
    """Fold constants, shift zero points, and drop what nothing reads."""

    def apply(self, graph: Graph) -> Graph:
        graph = _folded(graph)
        for node in graph.nodes:
            if isinstance(node.operator, _Quantisation):
                graph = _shifted(graph, node, node.operator)
            elif isinstance(node.operator, CoreNormalisation) and _unsigned(graph, node.output):
                graph = _normalised(graph, node, node.operator)
        return _shared(_bridged(graph)).without_unread(_is_ours)

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if not _is_ours(node) and not node.reason]:
            raise PassError(f"The host core must have a reason for each of its operators, not none for "
                            f"{', '.join(left)}")


def _is_ours(node: Node) -> bool:
    return isinstance(node.operator, IntegerOperator)


def _folded(graph: Graph) -> Graph:
    constants, nodes = dict(graph.constants), []
    for node in graph.nodes:
        operator = node.operator
        if isinstance(operator, OnnxDequantizeLinear) and set(node.inputs) - {""} <= constants.keys() \
                and not operator.block_size:
            constants[node.output] = dequantised(node, operator, constants)
        else:
            nodes.append(node)
    return graph.with_(nodes=tuple(nodes), constants=constants)


def _unsigned(graph: Graph, name: str) -> bool:
    return name in graph.tensors and graph.tensors[name].unsigned


def _shifted(graph: Graph, node: Node, operator: _Quantisation) -> Graph:
    """Give a QuantizeLinear or DequantizeLinear of an unsigned tensor the zero point that the tensor has now."""
    integer = node.output if isinstance(operator, OnnxQuantizeLinear) else node.inputs[0]
    if not _unsigned(graph, integer):
        return graph
    zero = f"{node.output}:zero_point"
    graph = graph.with_constants({zero: np.array(graph.tensors[integer].zero_point, np.int8)})
    attributes = {name: value for name, value in operator.attributes.items() if name != "output_dtype"}
    return graph.replaced((node,), node.with_(operator=replace(operator, attributes=attributes),
                                              inputs=(*node.inputs[:2], zero)))


def _normalised(graph: Graph, node: Node, operator: CoreNormalisation) -> Graph:
    """Give a normalisation's unsigned result the zero point that it has now; of its input only differences count."""
    zero = graph.tensors[node.output].zero_point
    return graph.replaced((node,), node.with_(operator=operator.with_attributes(y_zero_point=zero)))


def _bridged(graph: Graph) -> Graph:
    """Give operators that compute with raw uint8 values a uint8 copy of a tensor that is int8 by now, and back.

    The copy is Q(DQ(x)) with a scale of one, which is exact.
    """
    done: list[Node] = []
    copies: set[str] = set()
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    units: dict[str, np.ndarray] = {
        "tilewright:one": np.array(1, np.float32), "tilewright:int8": np.array(-128, np.int8),
        "tilewright:uint8": np.array(0, np.uint8)}

    def copied(node: Node, source: str, target: str, zeros: tuple[str, str]) -> list[Node]:
        constants.update(units)
        real = f"{target}:real"
        tensors[real] = Tensor(real, tensors[source].shape, "float32")
        reason = "it computes with uint8 values"
        return [Node(OnnxDequantizeLinear(), (source, "tilewright:one", zeros[0]), real, node.onnx_nodes, reason),
                Node(OnnxQuantizeLinear(), (real, "tilewright:one", zeros[1]), target, node.onnx_nodes, reason)]

    for node in graph.nodes:
        if isinstance(node.operator, _Known):
            done.append(node)
            continue
        names = {name: f"{name}:uint8" for name in (*node.inputs, node.output) if _unsigned(graph, name)}
        for name, new in names.items():
            tensors.setdefault(new, Tensor(new, tensors[name].shape, "uint8"))
        before = [name for name in names if name != node.output]
        for name in before:
            if names[name] not in copies:
                copies.add(names[name])
                done += copied(node, name, names[name], ("tilewright:int8", "tilewright:uint8"))
        done.append(node.with_(inputs=tuple(names.get(name, name) for name in node.inputs),
                               output=names.get(node.output, node.output)))
        copies.add(done[-1].output)
        if node.output in names:
            done += copied(node, names[node.output], node.output, ("tilewright:uint8", "tilewright:int8"))
    return graph.with_(nodes=tuple(done), tensors=tensors, constants=constants)


def _shared(graph: Graph) -> Graph:
    """Dequantise each tensor once."""
    known: dict[object, str] = {}
    names: dict[str, str] = {}
    nodes = []
    for node in graph.nodes:
        node = node.with_(inputs=tuple(names.get(name, name) for name in node.inputs))
        if isinstance(node.operator, OnnxDequantizeLinear) and node.output not in graph.outputs:
            same = (node.inputs[0], *(_value(graph, name) for name in node.inputs[1:]))
            if same in known:
                names[node.output] = known[same]
                continue
            known[same] = node.output
        nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


def _value(graph: Graph, name: str) -> object:
    value = graph.constants.get(name)
    return name if value is None else (value.dtype.name, value.shape, value.tobytes())
