"""Make the operators that are left ready for the host core: ``DequantizeLinear(constant)`` becomes a float constant.

Tensors that were uint8 in the model are int8 by now, 128 less. What reads or writes them on the core does it with a
zero point that is 128 less too, or only moves them.
"""

import numpy as np

from tilewright.compiler.errors import BadModelError
from tilewright.compiler.graph.graph import Graph, Node, Tensor
from tilewright.compiler.graph.integer_ops import INTEGER
from tilewright.compiler.graph.rewrite import Pass, PassError

MOVERS = frozenset({"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Concat", "Gather", "Expand",
                    "Tile", "DepthToSpace", "SpaceToDepth", "Identity", "MaxPool"})
"""Operators of ONNX that give the same for all values less 128, less 128."""

_QUANTISING = {"QuantizeLinear", "DequantizeLinear"}


class LeaveToCore(Pass):
    """Fold constants, shift zero points, and drop what nothing reads."""

    def apply(self, graph: Graph) -> Graph:
        graph = _folded(graph)
        for node in [node for node in graph.nodes if node.op in _QUANTISING]:
            graph = _shifted(graph, node)
        return _used(_shared(_bridged(graph)))

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op not in INTEGER and not node.reason]:
            raise PassError(f"The host core must have a reason for each of its operators, not none for "
                            f"{', '.join(left)}")


def _folded(graph: Graph) -> Graph:
    constants, nodes = dict(graph.constants), []
    for node in graph.nodes:
        if node.op == "DequantizeLinear" and set(node.inputs) - {""} <= constants.keys() \
                and not node.attrs.get("block_size"):
            constants[node.output] = dequantised(node, [constants[name] for name in node.inputs if name])
        else:
            nodes.append(node)
    return graph.with_(nodes=tuple(nodes), constants=constants)


def dequantised(node: Node, values: list[np.ndarray]) -> np.ndarray:
    """Return (q - zero point) · scale in float32, as ONNX defines it."""
    levels, scale, *zero = values
    axis = int(node.attrs.get("axis", 1))
    if any(each.size != scale.size for each in zero) or (scale.size != 1 and (
            not -levels.ndim <= axis < levels.ndim or scale.ndim != 1 or scale.size != levels.shape[axis])):
        raise BadModelError(f"Node {node.name!r} ({node.op}) must have one scale and zero point, or one for each of "
                            f"axis {axis}, not {scale.size} for the shape {list(levels.shape)!r}")
    if scale.size > 1:
        shape = [1] * levels.ndim
        shape[axis] = -1
        scale, zero = scale.reshape(shape), [each.reshape(shape) for each in zero]
    difference = levels.astype(np.int64) - (zero[0].astype(np.int64) if zero else 0)
    return (difference.astype(np.float32) * scale.astype(np.float32)).astype(np.float32)


def _unsigned(graph: Graph, name: str) -> bool:
    return name in graph.tensors and graph.tensors[name].unsigned


def _shifted(graph: Graph, node: Node) -> Graph:
    """Give a QuantizeLinear or DequantizeLinear of an unsigned tensor the zero point that the tensor has now."""
    integer = node.output if node.op == "QuantizeLinear" else node.inputs[0]
    if not _unsigned(graph, integer):
        return graph
    zero = f"{node.output}:zero_point"
    graph = graph.with_constants({zero: np.array(graph.tensors[integer].zero_point, np.int8)})
    attrs = {name: value for name, value in node.attrs.items() if name != "output_dtype"}
    return graph.replaced((node,), node.with_(inputs=(*node.inputs[:2], zero), attrs=attrs))


def _bridged(graph: Graph) -> Graph:
    """Give operators that compute with raw uint8 values a uint8 copy of a tensor that is int8 by now, and back.

    The copy is Q(DQ(x)) with a scale of one, which is exact.
    """
    done: list[Node] = []
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    units: dict[str, np.ndarray] = {
        "tilewright:one": np.array(1, np.float32), "tilewright:int8": np.array(-128, np.int8),
        "tilewright:uint8": np.array(0, np.uint8)}

    def copied(node: Node, source: str, target: str, zeros: tuple[str, str]) -> list[Node]:
        constants.update(units)
        real = f"{target}:real"
        tensors[real] = Tensor(real, tensors[source].shape, "float32")
        reason = "it computes with uint8 values"
        return [Node("DequantizeLinear", (source, "tilewright:one", zeros[0]), real, {}, node.onnx_nodes, reason),
                Node("QuantizeLinear", (real, "tilewright:one", zeros[1]), target, {}, node.onnx_nodes, reason)]

    for node in graph.nodes:
        if node.op in INTEGER or node.op in MOVERS or node.op in _QUANTISING or node.op == "QLinearMul":
            done.append(node)
            continue
        names = {name: f"{name}:uint8" for name in (*node.inputs, node.output) if _unsigned(graph, name)}
        for name, new in names.items():
            tensors.setdefault(new, Tensor(new, tensors[name].shape, "uint8"))
        before = [name for name in names if name != node.output]
        for name in before:
            if not any(each.output == names[name] for each in done):
                done += copied(node, name, names[name], ("tilewright:int8", "tilewright:uint8"))
        done.append(node.with_(inputs=tuple(names.get(name, name) for name in node.inputs),
                               output=names.get(node.output, node.output)))
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
        if node.op == "DequantizeLinear" and node.output not in graph.outputs:
            same = (node.op, node.inputs[0], *(_value(graph, name) for name in node.inputs[1:]))
            if same in known:
                names[node.output] = known[same]
                continue
            known[same] = node.output
        nodes.append(node)
    return graph.with_(nodes=tuple(nodes))


def _value(graph: Graph, name: str) -> object:
    value = graph.constants.get(name)
    return name if value is None else (value.dtype.name, value.shape, value.tobytes())


def _used(graph: Graph) -> Graph:
    """Drop operators of the core whose result nothing reads."""
    needed, nodes = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if node.op in INTEGER or node.output in needed:
            nodes.append(node)
            needed |= set(node.inputs)
    return graph.with_(nodes=tuple(reversed(nodes)))
