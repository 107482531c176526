"""The door to ONNX Runtime: every integer tensor of a model as its integer kernels compute it.

ONNX Runtime fuses a model before it runs it, and that decides what is computed in integers. So it is asked to write
its fused model, in which every integer tensor is then made an output, and which runs without further fusion:
the same kernels, with nothing hidden. The level of fusion is the one below the change to NHWC, which
renames tensors and moves data but computes the same.

Tensors keep the model's names: those that QuantizeLinear and the QLinear operators write. They are also the
names in ``compiler.network.layers.Network.tensors``, so the two need no map.
"""

import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as onnx_runtime

_INTEGERS = ("tensor(int8)", "tensor(uint8)")
_EXACT_IN_FLOAT = {"Relu", "Clip", "MaxPool", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity"}
"""Operators that neither round nor add: exact between a DequantizeLinear and a QuantizeLinear."""

ONNX_RUNTIME_ERRORS = (onnx_runtime.Fail, onnx_runtime.InvalidArgument, onnx_runtime.InvalidGraph,
                       onnx_runtime.InvalidProtobuf, onnx_runtime.NotImplemented, onnx_runtime.RuntimeException)
"""They have no base class of their own."""

_PROVIDERS = ["CPUExecutionProvider"]

VERSION = onnxruntime.__version__
SETTINGS = ("CPUExecutionProvider; session.qdqisint8allowed = 1; fused at level ORT_ENABLE_EXTENDED, then run as it "
            "is, at ORT_DISABLE_ALL")
"""How the reference is run."""


@dataclass(frozen=True, slots=True)
class Operator:
    """A node of the model that ONNX Runtime executes; ``integer`` if it reads and writes no floats but scales."""

    op: str
    output: str
    integer: bool


def session(model: str | Path | bytes) -> onnxruntime.InferenceSession:
    """Return ONNX Runtime's session of an untouched model, int8 allowed in integer kernels.

    Without that entry about half of an int8 QDQ network silently runs in float32 on x86.
    """
    return _session(model, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)


def run_reference(model: str | Path | bytes, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run a model and return its integer tensors and its outputs.

    Parameters
    ----------
    model : path or bytes
    inputs : mapping of str to ndarray
        The model's inputs, batch included.

    Returns
    -------
    dict of str to ndarray
        int8 or uint8 tensors of ONNX's shape by their names, and the model's own outputs.
    """
    return Reference(model).run(inputs)


class Reference:
    """A model in ONNX Runtime, prepared once, with every integer tensor visible, and ``floats`` if they are left.

    Attributes
    ----------
    operators : tuple of Operator
        What is executed, in order.
    """

    def __init__(self, model: str | Path | bytes, floats: Collection[str] = ()) -> None:
        fused = _fused(model)
        known = {value.name for value in fused.graph.output}
        for node in fused.graph.node:
            for name in {*node.output} - known - {""}:
                fused.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
        self._session = _session(fused.SerializeToString(), onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        self._unread = _unread_inputs(fused)
        types = {output.name: output.type for output in self._session.get_outputs()}
        self._names = [name for name, kind in types.items() if name in known or kind in _INTEGERS or name in floats]
        types |= {value.name: value.type for value in self._session.get_inputs()}
        self.operators = _operators(fused, types)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return every integer tensor and every output for some inputs; see :func:`run_reference`."""
        return dict(zip(self._names, self._session.run(self._names, self._unread | dict(inputs)), strict=True))

    @property
    def rounded_in_float(self) -> tuple[Operator, ...]:
        """Operators left in float whose result depends on it; none in a model that is wholly quantised."""
        quantisation = {"QuantizeLinear", "DequantizeLinear"}
        return tuple(operator for operator in self.operators
                     if not operator.integer and operator.op not in _EXACT_IN_FLOAT | quantisation)


class FloatReference:
    """A float model in ONNX Runtime, not fused further, with some of its tensors visible.

    Attributes
    ----------
    names, outputs : tuple of str
        Those of the ``wanted`` that it has, and its outputs; the outputs alone.
    """

    def __init__(self, model: Path, wanted: Iterable[str]) -> None:
        proto = onnx.load(model)
        computed = {name for node in proto.graph.node for name in node.output}
        outputs = [value.name for value in proto.graph.output]
        inner = [name for name in dict.fromkeys(wanted) if name in computed and name not in outputs]
        proto.graph.output.extend(map(onnx.helper.make_empty_tensor_value_info, inner))
        self.outputs, self.names = tuple(outputs), (*outputs, *inner)
        self._session = _session(proto.SerializeToString(), onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return those tensors for some inputs."""
        return dict(zip(self.names, self._session.run(list(self.names), dict(inputs)), strict=True))


def _session(model: str | Path | bytes, level: onnxruntime.GraphOptimizationLevel, written: str = "",
             ) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.graph_optimization_level = level
    # Only errors: writing a fused model always warns that it may not fit another machine.
    options.log_severity_level = 3
    options.optimized_model_filepath = written
    return onnxruntime.InferenceSession(model, options, providers=_PROVIDERS)


def _fused(model: str | Path | bytes) -> onnx.ModelProto:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fused.onnx")
        _session(model, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED, str(path))
        return onnx.load(path)


def _unread_inputs(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Return zeros for each input that no node reads: ONNX Runtime wants them all, and callers do not have those."""
    nodes, read = [*model.graph.node], {value.name for value in model.graph.output}
    while nodes:
        node = nodes.pop()
        read |= set(node.input)
        nodes += [inner for each in node.attribute for graph in (each.g, *each.graphs) for inner in graph.node]
    constants = {tensor.name for tensor in model.graph.initializer}
    return {value.name: np.zeros([extent.dim_value or 1 for extent in value.type.tensor_type.shape.dim],
                                 onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type))
            for value in model.graph.input if value.name not in read | constants}


def _operators(model: onnx.ModelProto, types: Mapping[str, str]) -> tuple[Operator, ...]:
    """Return the nodes of a fused model; a name without a type is a constant's."""
    return tuple(
        Operator(node.op_type, node.output[0],
                 all(types[name] in _INTEGERS for name in (*node.input, *node.output) if name in types))
        for node in model.graph.node)
