"""A quantised model as a file that holds weights of 2 and 4 bits as ONNX's int4, from opset 21 on."""

from collections.abc import Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper

from tilewright.compiler.onnx.opset import raised
from tilewright.runtime.precision.weighted_layers import constant_arrays, weighted_layers

__all__ = ["with_narrow_weights"]

_FEW = 4
"""Bits of the type. ONNX has int2, from opset 25 on, but ONNX Runtime 1.32 makes a QLinearConv of it, and refuses that
(findings/onnxruntime-int2-weights.sh)."""


def with_narrow_weights(model: onnx.ModelProto, bits: Mapping[str, int]) -> onnx.ModelProto:
    """Return a copy of a model whose weights of at most 4 ``bits``, by layer, are int4, in an opset that has them.

    Raises
    ------
    UnsupportedModelError
        If an operator cannot be brought to that opset.
    """
    made = onnx.ModelProto()
    made.CopyFrom(model)
    constants = constant_arrays(made.graph)
    narrow = {name for layer in weighted_layers(made.graph) if bits.get(layer.name, 8) <= _FEW
              for place, name in enumerate(layer.weights.input) if place != 1}
    for tensor in made.graph.initializer:
        if tensor.name in narrow:
            tensor.CopyFrom(_int4(constants[tensor.name], tensor.name))
    made = raised(made)
    del made.graph.value_info[:]    # the converter's
    return made


def _int4(levels: np.ndarray, name: str) -> TensorProto:
    """Return levels as a tensor of int4, two to a byte, the first in the low bits."""
    flat = levels.astype(np.uint8).ravel() & 15
    padded = np.concatenate([flat, np.zeros(flat.size % 2, np.uint8)])
    return helper.make_tensor(name, TensorProto.INT4, levels.shape, (padded[::2] | padded[1::2] << 4).tobytes(),
                              raw=True)
