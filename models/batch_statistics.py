"""Statistics of batch normalisations, taken from a forward pass in ONNX Runtime as training would take them."""

from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime
from onnx import NodeProto, helper, numpy_helper

__all__ = ["set_statistics"]

_EPSILON = 1e-5


def set_statistics(model: onnx.ModelProto, calibration: np.ndarray) -> None:
    """Give each batch normalisation the mean and variance of its own input, each normalising by those of its own.

    Parameters
    ----------
    model : onnx.ModelProto
        With one input of four axes, of an opset up to 17, its weights among the initialisers; changed in place.
    calibration : np.ndarray
        One batch of inputs, float32 of shape (n, channels, height, width).
    """
    normalisations = [node for node in model.graph.node if node.op_type == "BatchNormalization"]
    if not normalisations:
        return
    training = onnx.ModelProto()
    training.CopyFrom(model)
    graph = training.graph
    nodes = [each for node in model.graph.node
             for each in (_normalise(node) if node.op_type == "BatchNormalization" else [node])]
    wanted = [f"{node.output[0]} {what}" for node in normalisations for what in ("mean", "variance")]
    for field, content in (
            (graph.node, nodes), (graph.value_info, []),
            (graph.output, [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in wanted])):
        del field[:]
        field.extend(content)
    graph.input[0].type.tensor_type.shape.dim[0].dim_value = len(calibration)
    graph.initializer.extend([numpy_helper.from_array(np.float32(_EPSILON), "epsilon"),
                              numpy_helper.from_array(np.array([1, -1, 1, 1]), "per channel")])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # it warns of every mean and variance that is not used now
    session = onnxruntime.InferenceSession(training.SerializeToString(), options, providers=["CPUExecutionProvider"])
    statistics = session.run(wanted, {graph.input[0].name: calibration})
    places = {tensor.name: tensor for tensor in model.graph.initializer}
    for name, values in zip((name for node in normalisations for name in node.input[3:5]), statistics, strict=True):
        places[name].CopyFrom(numpy_helper.from_array(values.reshape(-1), name))


def _normalise(node: NodeProto) -> Iterator[NodeProto]:
    """Yield what a batch normalisation does in training; its statistics are ``<output> mean`` and ``… variance``."""
    x, gain, shift = node.input[:3]
    y = node.output[0]
    spread = {"axes": [0, 2, 3], "keepdims": 1}
    yield helper.make_node("ReduceMean", [x], [f"{y} mean"], **spread)
    yield helper.make_node("Sub", [x, f"{y} mean"], [f"{y} centred"])
    yield helper.make_node("Mul", [f"{y} centred"] * 2, [f"{y} square"])
    yield helper.make_node("ReduceMean", [f"{y} square"], [f"{y} variance"], **spread)
    yield helper.make_node("Add", [f"{y} variance", "epsilon"], [f"{y} above zero"])
    yield helper.make_node("Sqrt", [f"{y} above zero"], [f"{y} deviation"])
    yield helper.make_node("Div", [f"{y} centred", f"{y} deviation"], [f"{y} normal"])
    yield helper.make_node("Reshape", [gain, "per channel"], [f"{y} gain"])
    yield helper.make_node("Reshape", [shift, "per channel"], [f"{y} shift"])
    yield helper.make_node("Mul", [f"{y} normal", f"{y} gain"], [f"{y} scaled"])
    yield helper.make_node("Add", [f"{y} scaled", f"{y} shift"], [y])
