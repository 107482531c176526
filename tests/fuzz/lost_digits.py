"""Normalisations in which ONNX Runtime's float32 loses the digits: its result is held against one of float64.

LRN keeps its sum of squares by adding one square and subtracting another (``lrn.cc``), so that small ones behind large
ones are what rounding left, and a negative sum has no root; InstanceNormalization multiplies by 1 / deviation before it
subtracts (``instance_norm.cc``), which cancels where an image is constant. Of a normalisation that was taken apart the
variance may be quantised to 0: what a row differs from its mean by is then divided by 0, be it only rounding.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.runtime.oracle.comparison import float_differences

__all__ = ["loses_digits"]

_NORMALISATIONS = {"LRN", "InstanceNormalization", "LayerNormalization", "GroupNormalization"}
_MEANS = {"ReduceMean", "GlobalAveragePool"}


def loses_digits(model: onnx.ModelProto, nodes: Sequence[str], theirs: Mapping[str, np.ndarray],
                 ours: np.ndarray) -> str:
    """Tell why ONNX Runtime's result of a layer is not to be compared with, or nothing if it is.

    Parameters
    ----------
    model : ModelProto
    nodes : sequence of str
        Names of the layer's nodes.
    theirs : mapping of str to ndarray
        ONNX Runtime's tensors.
    ours : ndarray
        The layer's result: float32, or the integers behind a normalisation that was taken apart.
    """
    inside = [node for node in model.graph.node if node.name in nodes]
    endless = [node.op_type for node in inside if _is_endless(theirs.get(node.output[0]))]
    if endless and any(node.op_type in _MEANS for node in inside):
        return f"ONNX Runtime's {endless[0]} behind a mean divides by 0"
    of_layer = [node for node in inside if node.op_type in _NORMALISATIONS]
    constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    known = {**constants, **theirs}
    if len(of_layer) != 1 or ours.dtype != np.float32 or not all(name in known for name in of_layer[0].input if name):
        return ""
    node = of_layer[0]
    exact = _in_double(model, node, known).reshape(ours.shape)
    expected = theirs[node.output[0]].reshape(ours.shape)
    if float_differences(ours, exact)[0].any() or not float_differences(expected, exact)[0].any():
        return ""
    return f"ONNX Runtime's {node.op_type} of float32 is not that of float64"


def _is_endless(values: np.ndarray | None) -> bool:
    return values is not None and values.dtype == np.float32 and not np.isfinite(values).all()


def _in_double(model: onnx.ModelProto, node: onnx.NodeProto, known: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return the node's result by ONNX's reference, from its inputs in float64.

    Its LRN counts images where it means channels (``op_lrn.py`` of 1.23), hence one of our own.
    """
    given = {name: known[name].astype(np.float64) for name in node.input if name}
    if node.op_type == "LRN":
        attributes = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        return _lrn(given[node.input[0]], **attributes)
    graph = onnx.helper.make_graph(
        [node], "one node", [onnx.helper.make_empty_tensor_value_info(name) for name in given],
        [onnx.helper.make_empty_tensor_value_info(node.output[0])])
    alone = onnx.helper.make_model(graph, opset_imports=model.opset_import)
    return np.asarray(ReferenceEvaluator(alone).run(None, given)[0])


def _lrn(x: np.ndarray, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> np.ndarray:
    """Return ``x`` (images, channels, …) by the formula of ONNX's LRN."""
    before, behind = (size - 1) // 2, size // 2
    squares = np.pad(x**2, [(0, 0), (before, behind), *[(0, 0)] * (x.ndim - 2)])
    sums = np.lib.stride_tricks.sliding_window_view(squares, size, axis=1).sum(axis=-1)
    return x / (bias + alpha / size * sums)**beta
