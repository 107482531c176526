"""Batch normalisation of vectors becomes part of the matrix product before it, as that of images does of a convolution.

ONNX Runtime joins a BatchNormalization with a Conv, and leaves one behind a Gemm or MatMul: a face recogniser ends in
one, and so do heads of re-identification.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

__all__ = ["factor_and_shift", "fold_into_products"]

_Constants = Mapping[str, np.ndarray]


def factor_and_shift(node: NodeProto, constants: _Constants) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what a BatchNormalization multiplies by and then adds, in float64; None if that is not constant."""
    if not all(name in constants for name in node.input[1:]):
        return None
    epsilon = next((each.f for each in node.attribute if each.name == "epsilon"), 1e-5)
    gain, shift, mean, variance = (constants[name].astype(np.float64) for name in node.input[1:5])
    factor = gain / np.sqrt(variance + epsilon)
    return factor, shift - mean * factor


def fold_into_products(graph: onnx.GraphProto) -> bool:
    """Fold each BatchNormalization into the Gemm or MatMul of constants that it alone reads, in place; tell if any."""
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    readers = [name for node in graph.node for name in node.input] + [value.name for value in graph.output]
    changed = False
    for node in [each for each in graph.node if each.op_type == "BatchNormalization"]:
        product = makers.get(node.input[0])
        found = factor_and_shift(node, constants)
        if product is None or found is None or readers.count(node.input[0]) != 1:
            continue
        weights = _folded(product, *found, constants)
        if weights is None:
            continue
        names = [f"{node.output[0]}_weights", f"{node.output[0]}_bias"]
        graph.initializer.extend(numpy_helper.from_array(each.astype(np.float32), name)
                                 for each, name in zip(weights, names, strict=True))
        place = list(graph.node).index(product)
        graph.node.remove(product)
        graph.node.remove(node)
        graph.node.insert(place, helper.make_node("Gemm", [product.input[0], *names], node.output,
                                                  name=product.name or node.name))
        changed = True
    return changed


def _folded(product: NodeProto, factor: np.ndarray, shift: np.ndarray, constants: _Constants,
            ) -> tuple[np.ndarray, np.ndarray] | None:
    """Return weights (inputs, outputs) and bias of a Gemm that also scales and shifts; None where there is none."""
    attributes = {each.name: helper.get_attribute_value(each) for each in product.attribute}
    gemm = product.op_type == "Gemm"
    weights = constants.get(product.input[1]) if gemm or product.op_type == "MatMul" else None
    if weights is None or weights.ndim != 2 or attributes.get("transA"):
        return None
    bias = np.zeros(1)
    if len(product.input) > 2 and product.input[2]:
        if product.input[2] not in constants:
            return None
        bias = constants[product.input[2]].astype(np.float64) * attributes.get("beta", 1.0)
    columns = (weights.T if attributes.get("transB") else weights) * np.float64(attributes.get("alpha", 1.0))
    if columns.shape[1:] != factor.shape or bias.size != np.prod(bias.shape[-1:]) \
            or bias.size not in (1, factor.size):
        return None
    return columns * factor, np.broadcast_to(bias.ravel(), factor.shape) * factor + shift
