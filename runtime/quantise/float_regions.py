"""How much of a model is quantised, found by what there is: the regions that it computes in float.

A region is a set of nodes that float tensors join, between what quantises and what dequantises. One that is a layer as
it should be stays as it is: a product of quantised operands, one other operator, or a function of one tensor. Any other
one is computed in float, and may be quantised like a float model.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

import onnx
from onnx import NodeProto, TensorProto, numpy_helper

from tilewright.compiler.graph.onnx_names import BINARY, CHOICES, UNARY

__all__ = ["OPERATORS", "GraphRegion", "Precision", "channel_pairs", "constant_names", "float_regions", "is_quantised",
           "left_in_float", "precision_of"]

OPERATORS = (
    "Add", "AveragePool", "Clip", "Concat", "Conv", "ConvTranspose", "Flatten", "Gemm", "GlobalAveragePool",
    "GroupNormalization", "InstanceNormalization", "LayerNormalization", "LeakyRelu", "MatMul", "Max", "MaxPool", "Mul",
    "PRelu", "Pad", "RMSNormalization", "ReduceMax", "ReduceMean", "ReduceSum", "Relu", "Reshape", "Resize", "Sigmoid",
    "Slice", "Split", "Squeeze", "Sub", "Transpose", "Unsqueeze",
)
"""Operators to quantise. Softmax is not one: of its values between 0 and 1 an int8 scale leaves 127. Other operators
are computed in float between integer ones, and where they have one input they become a table of 256 values."""

_QUANTISED = {*OPERATORS, "BatchNormalization"}
"""Operators that come out quantised: a BatchNormalization of constants is a depthwise Conv by then."""

_PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
_MOVES = {"Cast", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice",
          "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
_CLAMPS = {"Clip", "Relu"}
_TAKEN = {"Cast", "Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"} | _CLAMPS
"""Operators that are one layer with a product behind which they stand; an Add of a constant is one more."""

_FUNCTIONS = UNARY | BINARY | CHOICES
_BORDERS = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "ConvInteger", "MatMulInteger", "QGemm"}
_INTEGERS = {"Shape": TensorProto.INT64, "Size": TensorProto.INT64, "ArgMax": TensorProto.INT64,
             "ArgMin": TensorProto.INT64, "NonZero": TensorProto.INT64}


class Precision(Enum):
    """Extent to which a model is quantised."""

    FLOAT = auto()
    """It computes floats and quantises none, but for its weights at most."""

    MIXED = auto()
    """Some layers compute in integers and others in float, of which some can be quantised."""

    QUANTISED = auto()
    """There is nothing in float that can be quantised."""


@dataclass(frozen=True, slots=True)
class GraphRegion:
    """Nodes, by index, that float tensors join.

    ``products`` is how many of them are products, ``is_float`` whether the region is other than one layer between
    quantised tensors.
    """

    nodes: tuple[int, ...]
    products: int
    is_float: bool


def precision_of(proto: onnx.ModelProto) -> Precision:
    """Return how much of a model, as it was read, is quantised."""
    if is_quantised(proto.graph):
        found = float_regions(proto.graph) or channel_pairs(proto.graph)
        return Precision.MIXED if found else Precision.QUANTISED
    made = {name for node in proto.graph.node for name in node.output}
    return Precision.FLOAT if made & _Tensors(proto.graph).floats else Precision.QUANTISED


def is_quantised(graph: onnx.GraphProto) -> bool:
    """Tell whether something quantises, dequantises or multiplies integers that is no constant."""
    constants = constant_names(graph)
    return any(_is_border(node) and not set(node.input) - {""} <= constants for node in graph.node)


def float_regions(graph: onnx.GraphProto) -> list[GraphRegion]:
    """Return the regions of a graph that are computed in float, and of which something can be quantised."""
    return [region for region in _regions(graph) if region.is_float]


def channel_pairs(graph: onnx.GraphProto) -> dict[str, str]:
    """Return what is quantised with several scales and dequantised at once, and is no constant: input by result."""
    scales = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer if len(tensor.dims) == 1}
    several = {name for name, values in scales.items() if values.size > 1 and (values != values[0]).any()}
    constants = constant_names(graph)
    quantised = {node.output[0]: node.input[0] for node in graph.node if node.op_type == "QuantizeLinear"
                 and node.input[1] in several and node.input[0] not in constants}
    return {node.output[0]: quantised[node.input[0]] for node in graph.node
            if node.op_type == "DequantizeLinear" and node.input[0] in quantised}


def left_in_float(graph: onnx.GraphProto) -> frozenset[str]:
    """Return the nodes of the float regions of a partly quantised graph, with those that quantise for them, by name.

    Of a node without a name it is its result's.
    """
    if not is_quantised(graph):
        return frozenset()
    inside = [graph.node[index] for region in float_regions(graph) for index in region.nodes]
    near = {name for node in inside for name in (*node.input, *node.output)}
    borders = [node for node in graph.node if _is_border(node) and near & {*node.input, *node.output}]
    return frozenset(node.name or node.output[0] for node in (*inside, *borders))


def constant_names(graph: onnx.GraphProto) -> set[str]:
    """Return the tensors that are constant, those computed of constants included."""
    constants = {tensor.name for tensor in graph.initializer} | {""}
    for node in graph.node:
        if set(node.input) <= constants:
            constants |= set(node.output)
    return constants


def _is_border(node: NodeProto) -> bool:
    return node.op_type in _BORDERS or node.op_type.startswith("QLinear")


class _Tensors:
    """A graph's tensors: floats, constants, those of several elements, outputs, quantised ones, makers and readers."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.floats = _float_names(graph)
        self.constants = constant_names(graph)
        self.rows = {tensor.name for tensor in graph.initializer if math.prod(tensor.dims) > 1}
        self.outputs = {value.name for value in graph.output}
        self.makers = {name: index for index, node in enumerate(graph.node) for name in node.output}
        self.quantised = {node.input[0] for node in graph.node if node.op_type == "QuantizeLinear"}
        self.readers: dict[str, list[int]] = {}
        for index, node in enumerate(graph.node):
            for name in node.input:
                self.readers.setdefault(name, []).append(index)


def _float_names(graph: onnx.GraphProto) -> set[str]:
    """Return the tensors that hold floats, as far as the operators alone tell: of most, all are of the first's type."""
    kinds = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.input)}
    kinds |= {tensor.name: tensor.data_type for tensor in graph.initializer}
    for node in graph.node:
        kind = _kind(node, kinds)
        for name in node.output:
            kinds.setdefault(name, kind)
    return {name for name, kind in kinds.items() if kind == TensorProto.FLOAT}


def _kind(node: NodeProto, kinds: Mapping[str, int]) -> int:
    """Return the type of a node's results."""
    attributes = {each.name: each for each in node.attribute}
    if node.op_type == "DequantizeLinear":
        return TensorProto.FLOAT
    if node.op_type == "Cast":
        return attributes["to"].i if "to" in attributes else TensorProto.UNDEFINED
    if node.op_type in ("Constant", "ConstantOfShape"):
        value = attributes.get("value")
        floats = node.op_type == "ConstantOfShape" or any(name.startswith("value_float") for name in attributes)
        return value.t.data_type if value else TensorProto.FLOAT if floats else TensorProto.INT64
    if _is_border(node) or node.op_type in _INTEGERS or node.op_type in CHOICES - {"Where"}:
        return _INTEGERS.get(node.op_type, TensorProto.UNDEFINED)
    first = node.input[1 if node.op_type == "Where" else 0] if len(node.input) > (node.op_type == "Where") else ""
    return kinds.get(first, TensorProto.UNDEFINED)


def _regions(graph: onnx.GraphProto) -> Iterator[GraphRegion]:
    """Yield the regions of all nodes that compute floats, or of them, and neither quantise nor dequantise."""
    tensors, seen = _Tensors(graph), set[int]()
    for start, node in enumerate(graph.node):
        if start in seen or not _computes(node, tensors):
            continue
        inside, todo = [], [start]
        seen.add(start)
        while todo:
            inside.append(index := todo.pop())
            each = graph.node[index]
            near = [tensors.makers[name] for name in each.input if name in tensors.makers and name in tensors.floats]
            near += [reader for name in each.output if name in tensors.floats
                     for reader in tensors.readers.get(name, ())]
            new = [i for i in dict.fromkeys(near) if i not in seen and _computes(graph.node[i], tensors)]
            seen.update(new)
            todo += new
        nodes = [graph.node[index] for index in sorted(inside)]
        yield GraphRegion(tuple(sorted(inside)), sum(each.op_type in _PRODUCTS for each in nodes),
                          _is_float(nodes, graph.node, tensors))


def _computes(node: NodeProto, tensors: _Tensors) -> bool:
    """Tell whether a node may be in a region: one of floats that are not constant, and no border."""
    return not _is_border(node) and bool({*node.input, *node.output} & tensors.floats) \
        and not set(node.output) <= tensors.constants


def _is_float(region: Sequence[NodeProto], nodes: Sequence[NodeProto], tensors: _Tensors) -> bool:
    """Tell whether a region is computed in float and has something to quantise."""
    made = {name for node in region for name in node.output}
    opened = bool(made & tensors.outputs)
    entering = {name for node in region for name in node.input
                if name in tensors.floats and name not in made and name not in tensors.constants}
    products = [node for node in region if node.op_type in _PRODUCTS]
    free = _TAKEN if products else _TAKEN | _MOVES
    operators = [node for node in region
                 if node.op_type not in free and not (products and _adds_constant(node, tensors))]
    entered = not entering <= tensors.makers.keys() or _reads_clamped(region, operators)
    if products:
        return len(operators) > 1 or opened or entered or _reads_floats(products[0], nodes, tensors)
    if not any(node.op_type in _QUANTISED for node in operators):
        return False
    if len({_levels(name, nodes, tensors) for name in entering}) == 1 and all(
            node.op_type in _MOVES or _is_function(node, tensors) for node in region):
        return opened or bool(entering & tensors.quantised - tensors.makers.keys())
    return opened or entered or len(operators) > 1


def _adds_constant(node: NodeProto, tensors: _Tensors) -> bool:
    return node.op_type == "Add" and bool(set(node.input) & tensors.constants)


def _reads_clamped(region: Sequence[NodeProto], operators: Sequence[NodeProto]) -> bool:
    """Tell whether an operator of a region, in order, reads what was clamped there."""
    clamped, computed = set[str](), {node.output[0] for node in operators}
    for node in region:
        if node.op_type in _CLAMPS or (node.output[0] not in computed and set(node.input) & clamped):
            clamped |= set(node.output)
    return any(set(node.input) & clamped for node in operators)


def _is_function(node: NodeProto, tensors: _Tensors) -> bool:
    """Tell whether a node may be part of a table: each element by itself, with constants of one element."""
    return node.op_type in _FUNCTIONS and not set(node.input) & tensors.rows


def _reads_floats(product: NodeProto, nodes: Sequence[NodeProto], tensors: _Tensors) -> bool:
    """Tell whether a product multiplies by a constant that is not quantised."""
    for name in product.input[:2]:
        while name in tensors.makers and nodes[tensors.makers[name]].op_type in _TAKEN:
            name = nodes[tensors.makers[name]].input[0]
        if name in tensors.constants and (name not in tensors.makers
                                          or nodes[tensors.makers[name]].op_type == "Constant"):
            return True
    return False


def _levels(name: str, nodes: Sequence[NodeProto], tensors: _Tensors) -> str:
    """Return the quantised tensor that ``name`` is made of by a DequantizeLinear; itself, if it is not."""
    return nodes[tensors.makers[name]].input[0] if name in tensors.makers else name
