"""A MatMul by a constant and the Add of a constant behind it become a Gemm, so that nothing is quantised between them.

ONNX Runtime's optimisation does that too, but leaves alone what it takes for parts of an attention, which it joins
later on other processors (`MatMulAddFusion`, preserve_attention_pattern).
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

__all__ = ["with_biases"]

_Shapes = Mapping[str, tuple[int, ...]]


def with_biases(graph: onnx.GraphProto, shapes: Callable[[], _Shapes]) -> None:
    """Join each such pair in place; ``shapes`` returns those of all tensors, and is called if there is a pair."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    uses = Counter(name for node in graph.node for name in node.input) + Counter(each.name for each in graph.output)
    products = {node.output[0]: node for node in graph.node if node.op_type == "MatMul" and uses[node.output[0]] == 1
                and node.input[1] in constants and node.input[0] not in constants}
    pairs = {node.output[0]: found for node in graph.node if node.op_type == "Add"
             and (found := _pair(node, products, constants)) is not None}
    if not pairs:
        return
    known, nodes = shapes(), []
    joined = {pair[0].output[0]: _joined(*pair, node, known) for node in graph.node
              if (pair := pairs.get(node.output[0])) is not None}
    for node in graph.node:
        own = pairs.get(node.output[0])
        if own is not None and (new := joined[own[0].output[0]]) is not None:
            nodes += new[0]
            graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in new[1].items())
        elif joined.get(node.output[0]) is None:
            nodes.append(node)
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _pair(add: NodeProto, products: Mapping[str, NodeProto], constants: Mapping[str, onnx.TensorProto],
          ) -> tuple[NodeProto, np.ndarray] | None:
    """Return the product and the constant, with an element per column, that an Add adds; None if it adds others."""
    for value, name in (add.input, reversed(add.input)):
        if value not in products or name not in constants:
            continue
        weights, bias = constants[products[value].input[1]], constants[name]
        if len(weights.dims) == 2 and bias.dims and math.prod(bias.dims) == bias.dims[-1] == weights.dims[1]:
            return products[value], numpy_helper.to_array(bias).ravel()
    return None


def _joined(product: NodeProto, bias: np.ndarray, add: NodeProto, shapes: _Shapes,
            ) -> tuple[list[NodeProto], dict[str, np.ndarray]] | None:
    """Return the Gemm in place of a product and an Add, between views of matrices, and its new constants."""
    x, result = (shapes.get(name, ()) for name in (product.input[0], add.output[0]))
    if len(x) < 2 or len(x) != len(result) or math.prod(result) == 0:
        return None
    name = add.output[0]
    there, back, rows, out = (f"{name}_{what}" for what in ("to_rows", "from_rows", "rows", "product"))
    constants = {f"{name}_bias": np.ascontiguousarray(bias)}
    label = add.name or name
    if len(x) == 2:
        return [helper.make_node("Gemm", [*product.input, f"{name}_bias"], [name], name=label)], constants
    constants |= {there: np.array([-1, x[-1]], np.int64), back: np.array(result, np.int64)}
    return [helper.make_node("Reshape", [product.input[0], there], [rows], name=f"{label}_to_rows"),
            helper.make_node("Gemm", [rows, product.input[1], f"{name}_bias"], [out], name=label),
            helper.make_node("Reshape", [out, back], [name], name=f"{label}_from_rows")], constants
