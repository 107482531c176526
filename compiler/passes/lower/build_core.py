"""The host core's part of a network: its layers, tensors and constants; helpers of build_layers."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import BadModelError, UnsupportedModelError, UnsupportedNodeError, raise_all
from tilewright.compiler.graph.core_operators import CoreOperator
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import Dequantize, IntegerOperator
from tilewright.compiler.graph.move_operators import IntegerMove, QReshape
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxArithmetic,
    OnnxAveragePool,
    OnnxDequantizeLinear,
    OnnxGlobalAveragePool,
    OnnxLeakyRelu,
    OnnxMoving,
    OnnxOperator,
    OnnxQuantizeLinear,
    OnnxWhere,
)
from tilewright.compiler.graph.scales import tensor_info
from tilewright.compiler.kernels.mac_counts import macs_of
from tilewright.compiler.kernels.refusal import refusal_of
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.kernels.ways_out import ENDINGS, MIDDLE, way_out_of_refusal
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import CoreLayer, TensorInfo

__all__ = ["check_core", "core_constants", "core_info", "core_layer", "core_tensors", "flat_info", "is_core",
           "stored_constants"]

_AFTERWARDS = Dequantize | OnnxDequantizeLinear | OnnxMoving | QReshape | IntegerMove
"""Operators that give the same values in another form or place."""

_ROUNDED_ONCE = OnnxArithmetic | OnnxAveragePool | OnnxGlobalAveragePool | OnnxWhere | OnnxLeakyRelu
"""Operators that ONNX Runtime fuses with what quantises their operands and result, with fewer roundings."""


def is_core(node: Node) -> bool:
    """Tell whether the host core computes ``node``."""
    return not isinstance(node.operator, IntegerOperator)


def core_layer(graph: Graph, node: Node, name: str) -> CoreLayer:
    """Return the layer of a node that is the host core's."""
    kernel, operator = CORE_KERNELS.get(node.op), node.operator
    assert isinstance(operator, OnnxOperator)
    attrs = {**operator.attributes, **({"opset": graph.opset} if graph.opset else {})}
    exact = not (isinstance(operator, CoreOperator) and not operator.exact) and (
        kernel is None or kernel.exactness == "exact") and not (
        isinstance(operator, _ROUNDED_ONCE)
        and all(isinstance(each.operator, OnnxQuantizeLinear) for each in graph.readers(node.output)))
    known = {**{each: graph.constants[each].shape for each in node.inputs if each in graph.constants},
             **{each: graph.tensors[each].shape for each in (*node.inputs, node.output) if each in graph.tensors}}
    macs = macs_of(node.op, [known.get(each) for each in node.inputs], known.get(node.output) or ())
    return CoreLayer(name=name, onnx_nodes=node.onnx_nodes, op=node.op, inputs=node.inputs, output=node.output,
                     attrs=attrs, reason=_reason(graph, node), exact=exact, macs=macs)


def _reason(graph: Graph, node: Node) -> str:
    """Return why the core computes a node; of what a model need not end with, also that it does not."""
    if node.op not in ENDINGS or not _computes_on(graph, node.output):
        return node.reason
    return f"{node.reason}; {MIDDLE}"


def _computes_on(graph: Graph, name: str) -> bool:
    """Tell whether anything but what moves or dequantises it reads a tensor."""
    names = [name]
    while names:
        for reader in graph.readers(names.pop()):
            if not isinstance(reader.operator, _AFTERWARDS):
                return True
            names.append(reader.output)
    return False


def core_info(tensor: Tensor) -> TensorInfo:
    """Return the back end's description of a tensor that the host core accesses."""
    shape = tensor.shape
    if shape is None or not tensor.dtype:
        raise BadModelError(f"Shape of tensor {tensor.name!r} must be known, and nothing determines it")
    if tensor.quantised and tensor.dtype == "int8" and len(shape) in (2, 4) and shape[0] == 1:
        return replace(tensor_info(tensor), dims=shape)
    if len(shape) == 4 and shape[0] == 1:
        datapath = (shape[1], shape[2], shape[3])
    else:
        datapath = (int(np.prod(shape)), 1, 1)
    scale, zero_point = tensor.parameters if tensor.quantised else (np.float32(1), 0)
    return TensorInfo(name=tensor.name, shape=datapath, scale=scale, zero_point=zero_point, unsigned=tensor.unsigned,
                      dtype=tensor.dtype, dims=shape)


def flat_info(tensor: Tensor) -> TensorInfo:
    """Return what the back end knows of an int8 tensor that lies row by row, whatever its shape."""
    shape = tensor.shape or ()
    dims = shape[1:] if len(shape) == 4 else shape
    if not tensor.quantised:
        raise UnsupportedModelError(f"Tensor {tensor.name!r} must have a scale and a zero point, and no operator gives "
                                    "it these", "quantise or dequantise it somewhere in the model")
    scale, zero_point = tensor.parameters
    return TensorInfo(name=tensor.name, shape=(int(np.prod(shape)), 1, 1), scale=scale, zero_point=zero_point,
                      unsigned=tensor.unsigned, dims=dims)


def core_tensors(graph: Graph) -> frozenset[str]:
    """Return the names of all tensors that the host core reads or writes."""
    return frozenset(name for node in graph.nodes if is_core(node) for name in (*node.inputs, node.output)
                     if name and name not in graph.constants)


def core_constants(graph: Graph) -> dict[str, np.ndarray]:
    """Return the constants that the host core reads."""
    return {name: graph.constants[name] for node in graph.nodes if is_core(node) for name in node.inputs
            if name in graph.constants}


def stored_constants(graph: Graph) -> dict[str, np.ndarray]:
    """Return the constants that layers of the datapath may read: levels, int8, as they lie in memory."""
    return {name: array for name, array in graph.constants.items() if array.dtype == np.int8 and array.ndim == 1
            and name in graph.tensors and graph.tensors[name].quantised}


def check_core(layers: Iterable[CoreLayer], tensors: Mapping[str, TensorInfo],
               constants: Mapping[str, np.ndarray]) -> None:
    """Refuse what the host core does not compute either, every layer of it.

    Raises
    ------
    UnsupportedNodeError
        For the first such layer; it knows the others.
    """
    refusals = []
    for layer in layers:
        if (refusal := refusal_of(core_call(layer, tensors, constants))) is not None:
            refusals.append(UnsupportedNodeError(layer.onnx_nodes[0] if layer.onnx_nodes else layer.name, layer.op,
                                                 f"{layer.reason}, and on the core: {refusal}",
                                                 way_out_of_refusal(layer.reason, refusal)))
    raise_all(refusals)
