"""What scales a result of a matrix product is part of it, and what scales an operand of it scales its result.

ONNX Runtime joins a BatchNormalization with a Conv, and leaves one behind a Gemm or MatMul: a face recogniser ends in
one, and so do heads of re-identification. An attention that scales its queries, or queries and keys, would have them
quantised once more, and copied: behind the product the factor is one of the scores, which are scaled in any case.
"""

import math
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

__all__ = ["factor_and_shift", "fold_into_products", "scale_behind_products"]

_Constants = Mapping[str, np.ndarray]
_KEEPS_NUMBERS = ("Transpose", "Reshape", "Squeeze", "Unsqueeze")


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


def scale_behind_products(graph: onnx.GraphProto) -> bool:
    """Let a number that multiplies or divides an operand of a MatMul multiply its result, in place; tell if any did.

    Both operands are computed, and nothing else reads what is scaled, which may be moved before the product.
    """
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    readers = [name for node in graph.node for name in node.input] + [value.name for value in graph.output]
    changed = False
    for product in [node for node in graph.node if node.op_type == "MatMul" and not set(node.input) & constants.keys()]:
        factor, scaling = 1.0, list[NodeProto]()
        for name in dict.fromkeys(product.input):
            found = _scaling(name, makers, readers, constants)
            if found is not None:
                scaling.append(found[0])
                factor *= found[1] ** list(product.input).count(name)
        if not scaling or not 0 < abs(factor) < math.inf:
            continue
        for node in scaling:
            _bypass(graph, node, next(name for name in node.input if name not in constants))
        _scale_result(graph, product, factor)
        changed = True
    return changed


def _scaling(name: str, makers: Mapping[str, NodeProto], readers: list[str], constants: _Constants,
             ) -> tuple[NodeProto, float] | None:
    """Return what scales an operand by one number, before it is moved or not, and that number; else None."""
    node = makers.get(name)
    while node is not None and node.op_type in _KEEPS_NUMBERS and readers.count(node.output[0]) == 1:
        node = makers.get(node.input[0])
    if node is None or node.op_type not in ("Mul", "Div") or readers.count(node.output[0]) != 1 \
            or (node.op_type == "Div" and node.input[1] not in constants):
        return None
    numbers = [constants[each] for each in node.input if each in constants]
    if len(numbers) != 1 or numbers[0].size != 1 or numbers[0].ndim > 1 or not numbers[0].item():
        return None
    number = float(numbers[0].item())
    return node, number if node.op_type == "Mul" else 1 / number


def _bypass(graph: onnx.GraphProto, node: NodeProto, source: str) -> None:
    """Take a node out; what reads its result reads ``source``."""
    for reader in graph.node:
        for place, name in enumerate(reader.input):
            if name == node.output[0]:
                reader.input[place] = source
    graph.node.remove(node)


def _scale_result(graph: onnx.GraphProto, product: NodeProto, factor: float) -> None:
    """Multiply the result of a product, whose name the multiplied one takes."""
    (result,) = product.output
    names = f"{result}_unscaled", f"{result}_scale"
    graph.initializer.append(numpy_helper.from_array(np.array(factor, np.float32), names[1]))
    product.output[0] = names[0]
    place = list(graph.node).index(product)
    graph.node.insert(place + 1, helper.make_node("Mul", names, [result], name=f"{product.name or result}_scale"))
