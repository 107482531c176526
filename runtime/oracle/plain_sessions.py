"""ONNX Runtime as it runs a file by itself: at its defaults, or with nothing fused.

Neither is what we equal (`runtime.oracle.onnx_runtime` is), and what they compute is shown for comparison. At its
defaults ONNX Runtime computes many int8 models partly in float32 on x86, and saturates without VNNI; with nothing
fused it computes every operator between DequantizeLinear and QuantizeLinear in float32, which is what the file says,
but for the rounding of floats.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import onnx
import onnxruntime
from onnxruntime import GraphOptimizationLevel as Level

__all__ = ["SETTINGS", "PlainName", "PlainSession"]

PlainName = Literal["default", "unfused"]

SETTINGS: dict[PlainName, str] = {
    "default": "CPUExecutionProvider with default options; tensors between operators as at level ORT_ENABLE_EXTENDED",
    "unfused": "CPUExecutionProvider at ORT_DISABLE_ALL: all between DequantizeLinear and QuantizeLinear in float",
}


class PlainSession:
    """A model in ONNX Runtime, as it is at its defaults or unfused, with some of its tensors visible.

    Parameters
    ----------
    model : Path or bytes
    name : {"default", "unfused"}
    wanted : collection of str
        Tensors to show, where the session has them.

    Attributes
    ----------
    operators : dict of str to str
        ONNX's operator of each node of the file, by the node's name and by its first output's.
    """

    def __init__(self, model: Path | bytes, name: PlainName, wanted: Collection[str] = ()) -> None:
        proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
        self._outputs = [value.name for value in proto.graph.output]
        self.operators = {each: node.op_type for node in proto.graph.node for each in (node.name, *node.output[:1])}
        unfused = name == "unfused"
        self._session = None if unfused else _session(proto, Level.ORT_ENABLE_ALL)
        self._shown = proto if unfused else _fused(proto)
        shown = {output: output for node in self._shown.graph.node for output in node.output}
        shown |= {} if unfused else _old_names(self._shown, proto)
        self._inner = {name: old for name, old in shown.items() if old in wanted and old not in self._outputs
                       and name not in self._outputs}
        self._shown.graph.output.extend(map(onnx.helper.make_empty_tensor_value_info, self._inner))
        self._inner_session = _session(self._shown, Level.ORT_DISABLE_ALL)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return every output, and the wanted tensors that there are, by name.

        Inputs become what the file says their type is; those that nothing reads are zeros if they are not given.
        """
        feed = {value.name: _value(value, inputs) for value in self._inner_session.get_inputs()}
        arrays = self._inner_session.run([*self._outputs, *self._inner], feed)
        found = dict(zip([*self._outputs, *self._inner.values()], arrays, strict=True))
        if self._session is not None:
            found |= dict(zip(self._outputs, self._session.run(self._outputs, feed), strict=True))
        return found


def _old_names(fused: onnx.ModelProto, model: onnx.ModelProto) -> dict[str, str]:
    """Return what tensors that ONNX Runtime has renamed were called: it makes int8 uint8, and keeps names of nodes."""
    old = {node.name: node for node in model.graph.node if node.name}
    known = {output for node in model.graph.node for output in node.output}
    return {node.output[0]: _quantised(old[node.name], model) for node in fused.graph.node
            if node.name in old and node.output[0] not in known}


def _quantised(node: onnx.NodeProto, model: onnx.ModelProto) -> str:
    """Return the integers that a node's result becomes, which a fused node writes itself; or its own result."""
    result = node.output[0]
    while node.op_type != "QuantizeLinear":
        readers = [each for each in model.graph.node if node.output[0] in each.input]
        if len(readers) != 1 or readers[0].op_type not in ("QuantizeLinear", "Relu", "Clip"):
            return result
        node = readers[0]
    return node.output[0]


def _value(value: onnxruntime.NodeArg, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    kind = value.type.removeprefix("tensor(").removesuffix(")")
    dtype = {"float": "float32", "double": "float64"}.get(kind, kind)
    if value.name in inputs:
        return np.asarray(inputs[value.name]).astype(dtype, copy=False)
    return np.zeros([extent if isinstance(extent, int) else 1 for extent in value.shape], dtype)


def _session(model: onnx.ModelProto, level: Level, written: str = "") -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = written
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _fused(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model that ONNX Runtime makes of one by default, before it changes the layout of tensors."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "fused.onnx")
        _session(model, Level.ORT_ENABLE_EXTENDED, str(path))
        return onnx.load(path)
