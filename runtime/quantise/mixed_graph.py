"""Partly quantised models: find the float regions, and keep the quantiser away from the others.

A region is a set of nodes that float tensors join, between what quantises and dequantises. One with a single product
between integers is a layer as it should be and stays; one with a product that reads or makes floats, or with several,
is quantised like a float model.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, numpy_helper

from tilewright.compiler.errors import BadModelError

__all__ = [
    "GraphRegion", "behind_dequantisation", "clear_repeats", "float_regions", "fold_weights", "kept_nodes",
    "name_nodes",
]

_PRODUCTS = {"Conv", "ConvTranspose", "Gemm", "MatMul"}
_TAKEN = {"Add", "Cast", "Clip", "Dropout", "Flatten", "Identity", "Relu", "Reshape", "Squeeze", "Transpose",
          "Unsqueeze"}
"""Operators that are one layer with a product before or behind them."""

_SHARING = {"AveragePool", "Flatten", "MaxPool", "Pad", "Reshape", "Resize", "Slice", "Split", "Squeeze", "Transpose",
            "Unsqueeze"}
"""Operators whose result ONNX Runtime's quantiser quantises as their input."""

_BORDERS = {"QuantizeLinear", "DequantizeLinear"}


@dataclass(frozen=True, slots=True)
class GraphRegion:
    """Nodes, by index, that float tensors join.

    ``open`` tells that the region reads or makes a float beside that of a DequantizeLinear or for a QuantizeLinear,
    ``functions`` that it has operators beside products that no product takes with it.
    """

    nodes: tuple[int, ...]
    products: int
    open: bool
    functions: bool

    @property
    def is_float(self) -> bool:
        """Whether its products are computed in float."""
        return self.products > 1 or (self.products == 1 and (self.open or self.functions))


def float_regions(graph: onnx.GraphProto) -> list[GraphRegion]:
    """Return the regions of a graph whose products are computed in float."""
    return [region for region in _regions(graph) if region.is_float]


def kept_nodes(graph: onnx.GraphProto) -> list[str]:
    """Return the names of the nodes that are not in float regions, where something is quantised already."""
    if not any(node.op_type in _BORDERS and not _of_constant(node, graph) for node in graph.node):
        return []
    float_ones = {index for region in float_regions(graph) for index in region.nodes}
    return [node.name for index, node in enumerate(graph.node) if index not in float_ones]


def behind_dequantisation(graph: onnx.GraphProto) -> list[str]:
    """Return the names of nodes that only move or pool what a DequantizeLinear gives; all nodes must have names.

    Their input is quantised already, so ONNX Runtime's quantiser has no parameters for their result, and waits for
    them for ever (onnxruntime 1.2x, `QDQQuantizer._quantize_sharing_param_tensors`). The product behind them has its
    operand quantised anew.
    """
    names, dequantised = [], set()
    for node in graph.node:
        if node.op_type in _SHARING and node.input[0] in dequantised:
            names.append(node.name)
        elif node.op_type != "DequantizeLinear":
            continue
        dequantised |= set(node.output)
    return names


def name_nodes(graph: onnx.GraphProto) -> None:
    """Give every node without a name, or with that of another, a name of its own, in place."""
    seen: set[str] = set()
    for index, node in enumerate(graph.node):
        if not node.name or node.name in seen:
            node.name = f"{node.name or node.op_type}_{index}"
        seen.add(node.name)


def fold_weights(graph: onnx.GraphProto) -> bool:
    """Make each DequantizeLinear of constants that a float region reads a float constant, in place; tell if any was.

    Raises
    ------
    BadModelError
        If scales and zero points do not fit the levels.
    """
    constants = {tensor.name: tensor for tensor in graph.initializer}
    makers = {node.output[0]: node for node in graph.node
              if node.op_type == "DequantizeLinear" and set(node.input) - {""} <= constants.keys()}
    folded: dict[str, str] = {}
    for index in sorted(index for region in float_regions(graph) for index in region.nodes):
        node = graph.node[index]
        for position, name in enumerate(node.input):
            if name in makers:
                if name not in folded:
                    folded[name] = f"{name}:float"
                    graph.initializer.append(numpy_helper.from_array(_dequantised(makers[name], constants),
                                                                     folded[name]))
                node.input[position] = folded[name]
    _drop_unread(graph, [makers[name] for name in folded])
    return bool(folded)


def clear_repeats(plain: Path, made: Path) -> None:
    """Drop from the file ``made`` what the quantiser has put beside quantisation that was there in ``plain``."""
    before = onnx.load(plain).graph
    if any(node.op_type in _BORDERS for node in before.node):
        model = onnx.load(made)
        _drop_repeats(model.graph, {name for node in before.node for name in node.output})
        onnx.save(model, made)


def _drop_repeats(graph: onnx.GraphProto, before: Collection[str]) -> None:
    """Drop quantisation beside quantisation, in place; ``before`` are the tensors that there were."""
    makers = {name: node for node in graph.node for name in node.output}
    renamed: dict[str, str] = {}
    for node in graph.node:
        # … → Q → DQ of the quantiser; where a DequantizeLinear is before it or only a QuantizeLinear behind, they go.
        quantise = makers.get(node.input[0]) if node.op_type == "DequantizeLinear" else None
        if quantise is None or quantise.op_type != "QuantizeLinear" or quantise.output[0] in before:
            continue
        source = makers.get(quantise.input[0])
        readers = [each for each in graph.node if node.output[0] in each.input]
        if (source is not None and source.op_type == "DequantizeLinear") or (
                readers and all(each.op_type == "QuantizeLinear" for each in readers)):
            renamed[node.output[0]] = quantise.input[0]
    outputs = {value.name for value in graph.output}
    for node in graph.node:
        node.input[:] = [renamed.get(name, name) for name in node.input]
    dead = [makers[name] for name in renamed if name not in outputs]
    _drop_unread(graph, [*dead, *(makers[node.input[0]] for node in dead)])


def _regions(graph: onnx.GraphProto) -> Iterator[GraphRegion]:
    """Yield the regions of all nodes that neither quantise nor dequantise."""
    constants = {tensor.name for tensor in graph.initializer}
    borders = {index for index, node in enumerate(graph.node)
               if node.op_type in _BORDERS or node.op_type.startswith("QLinear") or node.op_type == "Constant"}
    makers = {name: index for index, node in enumerate(graph.node) for name in node.output}
    readers: dict[str, list[int]] = {}
    for index, node in enumerate(graph.node):
        for name in node.input:
            readers.setdefault(name, []).append(index)
    outputs = {value.name for value in graph.output}
    seen: set[int] = set()
    for start in range(len(graph.node)):
        if start in seen or start in borders:
            continue
        inside, todo, opened = [], [start], False
        seen.add(start)
        while todo:
            inside.append(index := todo.pop())
            node = graph.node[index]
            near = [makers[name] for name in node.input if name in makers]
            near += [reader for name in node.output for reader in readers.get(name, ())]
            opened |= any(name and name not in makers and name not in constants for name in node.input)
            opened |= any(name in outputs for name in node.output)
            new = [each for each in dict.fromkeys(near) if each not in borders and each not in seen]
            seen.update(new)
            todo += new
        products = sum(graph.node[index].op_type in _PRODUCTS for index in inside)
        functions = any(graph.node[index].op_type not in _PRODUCTS | _TAKEN for index in inside)
        yield GraphRegion(tuple(sorted(inside)), products, opened, functions)


def _of_constant(node: NodeProto, graph: onnx.GraphProto) -> bool:
    return node.op_type == "DequantizeLinear" and any(node.input[0] == tensor.name for tensor in graph.initializer)


def _dequantised(node: NodeProto, constants: Mapping[str, TensorProto]) -> np.ndarray:
    """Return (q - zero point) · scale in float32, as ONNX defines it."""
    levels, scale, *zero = (numpy_helper.to_array(constants[name]) for name in node.input if name)
    axis = next((each.i for each in node.attribute if each.name == "axis"), 1)
    difference = levels.astype(np.int64)
    shape = [1] * levels.ndim
    try:
        if scale.size > 1:
            shape[axis] = -1
        if zero:
            difference = difference - zero[0].astype(np.int64).reshape(shape if zero[0].size > 1 else ())
        scale = scale.astype(np.float32).reshape(shape if scale.size > 1 else ())
        return np.asarray(difference.astype(np.float32) * scale, np.float32).reshape(levels.shape)
    except (ValueError, IndexError) as error:
        raise BadModelError(f"Node {node.name!r} ({node.op_type}) must have one scale and zero point, or one for each "
                            f"of axis {axis}, not {scale.size} for the shape {list(levels.shape)!r}") from error


def _drop_unread(graph: onnx.GraphProto, nodes: Sequence[NodeProto]) -> None:
    """Remove those of the ``nodes`` whose result nothing reads, readers first."""
    outputs = {value.name for value in graph.output}
    for node in nodes:
        read = {name for each in graph.node for name in each.input} | outputs
        if not read & set(node.output):
            graph.node.remove(node)

