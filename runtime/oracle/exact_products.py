"""Integer products that ONNX Runtime computes exactly on any processor, although some of its kernels saturate.

On x86 without VNNI its kernels for uint8 by int8 add two products in 16 bits and saturate (``vpmaddubsw``): 16 times
255 by 127 is 262,136 there, not 518,160. Its kernels for uint8 by uint8 are exact. So int8 operands of such products
become uint8, 128 more in value and in zero point: the differences that are multiplied are the same, and all else,
requantisation included, is ONNX Runtime's own.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import onnxruntime
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

__all__ = [
    "EXACT", "MIXED", "SATURATING", "UNSIGNED", "Kernels", "kernels_here", "make_exact", "multiplies",
    "multiplies_constants", "multiply", "probe",
]

_Pair = tuple[str, str]
"""Types of the first operand, the activations in most models, and of the second, their weights."""

MIXED: _Pair = ("uint8", "int8")
UNSIGNED: _Pair = ("uint8", "uint8")
_PAIRS: tuple[_Pair, ...] = (MIXED, UNSIGNED, ("int8", "int8"), ("int8", "uint8"))

_TERMS, _COLUMNS = 16, 32
_EXTREMES = {"uint8": (0, 255), "int8": (-128, 127)}
_TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8}
_OFFSET = 128
_SUFFIX = "/as uint8"

_SECONDS: dict[str, tuple[tuple[int, int], ...]] = {
    "ConvInteger": ((1, 3),),
    "DynamicQuantizeLSTM": ((1, 9), (2, 11)),
    "DynamicQuantizeMatMul": ((1, 3),),
    "MatMulInteger": ((1, 3),),
    "MatMulIntegerToFloat": ((1, 5),),
    "QAttention": ((1, 7),),
    "QGemm": ((3, 5),),
    "QLinearConv": ((3, 5),),
    "QLinearMatMul": ((3, 5),),
}
"""ONNX Runtime's operators that multiply integers: the inputs with each second operand and its zero point. The first
one is input 0; where that is float, the operator itself quantises it to uint8."""


@dataclass(frozen=True, slots=True)
class Kernels:
    """Which ``exact`` pairs of types ONNX Runtime multiplies exactly here."""

    exact: frozenset[_Pair]

    @property
    def saturate(self) -> bool:
        """Whether products of uint8 and int8 are wrong if left to it."""
        return MIXED not in self.exact

    @property
    def has_exact_route(self) -> bool:
        """Whether such products can be computed as products of uint8."""
        return UNSIGNED in self.exact

    def __str__(self) -> str:
        if not self.saturate:
            return "exact"
        if self.has_exact_route:
            return "uint8 x int8 saturates; run as uint8 x uint8"
        return "uint8 x int8 saturates, and so does uint8 x uint8"


EXACT = Kernels(frozenset(_PAIRS))
"""As on ARM, and on x86 with VNNI."""

SATURATING = Kernels(frozenset(_PAIRS) - {MIXED})
"""As on x86 without VNNI."""


def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the product of two matrices as ONNX Runtime's MatMulInteger computes it."""
    values = {"left": left, "right": right}
    inputs = [helper.make_tensor_value_info(name, _TYPES[str(value.dtype)], value.shape)
              for name, value in values.items()]
    graph = helper.make_graph([helper.make_node("MatMulInteger", list(values), ["product"])], "probe", inputs,
                              [helper.make_tensor_value_info("product", TensorProto.INT32, None)])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["product"], values)[0])


def probe(product: Callable[[np.ndarray, np.ndarray], np.ndarray] = multiply) -> Kernels:
    """Return which pairs of types ``product`` multiplies exactly, tried on sums of their extremes."""
    def exact(pair: _Pair) -> bool:
        for first in _EXTREMES[pair[0]]:
            for second in _EXTREMES[pair[1]]:
                left = np.full((2, _TERMS), first, pair[0])
                right = np.full((_TERMS, _COLUMNS), second, pair[1])
                if (product(left, right) != _TERMS * first * second).any():
                    return False
        return True

    return Kernels(frozenset(filter(exact, _PAIRS)))


@cache
def kernels_here() -> Kernels:
    """Return the result of the probe on this processor."""
    return probe()


def multiplies(model: ModelProto) -> bool:
    """Tell whether a model has products of integers at all."""
    return any(_is_product(node) for graph in _graphs(model.graph) for node in graph.node)


def multiplies_constants(model: ModelProto) -> bool:
    """Tell whether a model has a product of constants, which ONNX Runtime computes once, while it fuses the model."""
    constants = {tensor.name for tensor in model.graph.initializer} - {value.name for value in model.graph.input}
    for node in model.graph.node:
        if constants.issuperset(filter(None, node.input)):
            if _is_product(node):
                return True
            constants.update(node.output)
    return False


def make_exact(model: ModelProto, types: Mapping[str, str], kernels: Kernels) -> tuple[str, ...]:
    """Make int8 operands uint8, in place, wherever a product would saturate otherwise.

    Parameters
    ----------
    model : ModelProto
        As ONNX Runtime runs it: nothing is fused any more.
    types : mapping of str to str
        Of tensors that are no constants, as ONNX Runtime writes them: ``tensor(uint8)``.
    kernels : Kernels

    Returns
    -------
    tuple of str
        Outputs of the products that are left and that ``kernels`` do not compute exactly.
    """
    known = {name: kind.removeprefix("tensor(").removesuffix(")") for name, kind in types.items()}
    known |= {tensor.name: str(helper.tensor_dtype_to_np_dtype(tensor.data_type)) for tensor in model.graph.initializer}
    if kernels.saturate and kernels.has_exact_route:
        _Rewriting(model.graph, known).rewrite()
    left = [node.output[0] for node in model.graph.node
            if _is_product(node) and any(pair not in kernels.exact for pair in _pairs(node, known))]
    # Of tensors inside a branch or a loop nothing is known.
    left += [node.output[0] for graph in list(_graphs(model.graph))[1:] for node in graph.node
             if _is_product(node) and kernels != EXACT]
    return tuple(left)


def _is_product(node: NodeProto) -> bool:
    return node.op_type in _SECONDS


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Return a graph and those of its nodes' branches and loops."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                if inner.node:
                    yield from _graphs(inner)


def _pairs(node: NodeProto, types: Mapping[str, str]) -> Iterator[_Pair]:
    """Return the types that a node multiplies."""
    first = types.get(node.input[0], "unknown")
    for second, _ in _SECONDS[node.op_type]:
        yield "uint8" if first.startswith("float") else first, types.get(node.input[second], "unknown")


class _Rewriting:
    """A graph whose products of uint8 and int8 become products of uint8 and uint8."""

    def __init__(self, graph: GraphProto, types: dict[str, str]) -> None:
        self._graph, self._types = graph, types
        given = {value.name for value in graph.input}
        self._constants = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in given}
        self._nodes: list[NodeProto] = []

    def rewrite(self) -> None:
        for node in list(self._graph.node):
            if _is_product(node):
                pairs = list(_pairs(node, self._types))
                for pair, (operand, zero_point) in zip(pairs, _SECONDS[node.op_type], strict=True):
                    if pair == MIXED:
                        self._shift(node, operand, zero_point)
            self._nodes.append(node)
        del self._graph.node[:]
        self._graph.node.extend(self._nodes)

    def _shift(self, node: NodeProto, operand: int, zero_point: int) -> None:
        """Add 128 to an operand and to its zero point, which is 0 if a node has none."""
        node.input.extend([""] * (zero_point + 1 - len(node.input)))
        zero = node.input[zero_point]
        node.input[operand] = self._shifted(node.input[operand])
        node.input[zero_point] = self._shifted(zero) if zero else self._constant("0" + _SUFFIX, np.array(0, np.int8))

    def _shifted(self, name: str) -> str:
        shifted = name + _SUFFIX
        if shifted in self._types:
            return shifted
        if name in self._constants:
            return self._constant(shifted, numpy_helper.to_array(self._constants[name]))
        self._types[shifted] = "uint8"
        wide, sum_ = f"{shifted}, int32", f"{shifted}, sum"
        offset = f"{shifted}, offset"
        self._graph.initializer.append(numpy_helper.from_array(np.array(_OFFSET, np.int32), offset))
        self._nodes += [helper.make_node("Cast", [name], [wide], to=TensorProto.INT32),
                        helper.make_node("Add", [wide, offset], [sum_]),
                        helper.make_node("Cast", [sum_], [shifted], to=TensorProto.UINT8)]
        return shifted

    def _constant(self, name: str, value: np.ndarray) -> str:
        """Return the name of a new constant, 128 more than an int8 one."""
        if name not in self._types:
            self._types[name] = "uint8"
            moved = (value.astype(np.int16) + _OFFSET).astype(np.uint8)
            self._graph.initializer.append(numpy_helper.from_array(moved, name))
        return name
