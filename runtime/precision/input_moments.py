"""How the inputs of each layer's weights vary together, measured on samples: it decides which errors cost accuracy."""

from collections.abc import Iterable, Mapping

import numpy as np
import onnx
import onnxruntime
from numpy.lib.stride_tricks import sliding_window_view
from onnx import NodeProto

from tilewright.runtime.precision.weight_rounding import MOST_CORRELATED
from tilewright.runtime.precision.weighted_layers import weighted_layers

__all__ = ["input_moments"]

_MOST_ROWS = 512
"""Places of a sample, at most, whose inputs are taken."""


def input_moments(model: onnx.ModelProto, feeds: Iterable[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the mean products of the inputs of each two weights of a channel, by layer.

    Parameters
    ----------
    model : ModelProto
        Of Q and DQ; it stays as it is.
    feeds : iterable of mapping of str to ndarray
        The samples: inputs by name.

    Returns
    -------
    dict of str to ndarray
        (groups, weights of a channel, weights of a channel), float64. Layers with very many weights a channel, and
        transposed convolutions, are not there.
    """
    layers = [layer for layer in weighted_layers(model.graph) if layer.node.op_type != "ConvTranspose"]
    names = sorted({layer.node.input[0] for layer in layers})
    session = _session(model, names)
    sizes = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    sums: dict[str, np.ndarray] = {}
    counts: dict[str, int] = {}
    for feed in feeds:
        tensors = dict(zip(names, session.run(names, dict(feed)), strict=True))
        for layer in layers:
            shape = sizes[layer.weights.input[0]]
            if np.prod(shape) / shape[layer.axis] > MOST_CORRELATED:
                continue
            rows = _rows(layer.node, tensors[layer.node.input[0]].astype(np.float64), shape)
            sums[layer.name] = sums.get(layer.name, 0) + rows.transpose(0, 2, 1) @ rows
            counts[layer.name] = counts.get(layer.name, 0) + rows.shape[1]
    return {name: total / counts[name] for name, total in sums.items()}


def _session(model: onnx.ModelProto, names: list[str]) -> onnxruntime.InferenceSession:
    own = onnx.ModelProto()
    own.CopyFrom(model)
    own.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names
                            if name not in {value.name for value in own.graph.output})
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(own.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _rows(node: NodeProto, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the inputs of a channel's weights at some places, (groups, places, weights)."""
    if node.op_type != "Conv":
        transposed = any(each.name == "transA" and each.i for each in node.attribute)
        rows = (x.T if transposed else x).reshape(1, -1, x.shape[0] if transposed else x.shape[-1])
    else:
        rows = _patches(node, x, shape)
    return rows[:, ::-(-rows.shape[1] // _MOST_ROWS)]


def _patches(node: NodeProto, x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the patches that a convolution of any rank reads, as `_rows` does."""
    given = {each.name: list(each.ints) or [each.i] for each in node.attribute}
    rank, kernel = len(shape) - 2, shape[2:]
    strides, dilations = given.get("strides") or [1] * rank, given.get("dilations") or [1] * rank
    pads, groups = given.get("pads") or [0] * (2 * rank), given.get("group", [1])[0]
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    spans = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    spans = [min(span, size) for span, size in zip(spans, padded.shape[2:], strict=True)]
    windows = sliding_window_view(padded, spans, axis=tuple(range(2, 2 + rank)))
    windows = windows[(slice(None),) * 2 + tuple(slice(None, None, step) for step in strides)
                      + tuple(slice(None, None, step) for step in dilations)]
    # images, channels, places ..., kernel ... -> groups, images and places, channels of the group and kernel
    images, channels, *rest = windows.shape
    apart = windows.reshape(images, groups, channels // groups, *rest)
    order = (1, 0, *range(3, 3 + rank), 2, *range(3 + rank, 3 + 2 * rank))
    return apart.transpose(order).reshape(groups, -1, int(np.prod(shape[1:])))
