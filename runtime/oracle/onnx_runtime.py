"""The only access to ONNX Runtime: every integer tensor of a model as its integer kernels compute it.

ONNX Runtime fuses a model before it runs it, and that decides what is computed in integers. So it is asked to write
its fused model, in which every integer tensor is then made an output, and which runs without further fusion:
the same kernels, with nothing hidden. The level of fusion is the one below the change to NHWC, which
renames tensors and moves data but computes the same. The model is in normal form first, as the compiler has it
(`compiler.normal`): ONNX Runtime recognises what it computes in integers by form. Where its kernels saturate, as on
x86 without VNNI, the fused model is changed so that they do not (`runtime.oracle.exact_products`).

Tensors keep the model's names: those that QuantizeLinear and the QLinear operators write. They are also the
names in ``compiler.network.layers.Network.tensors``, so the two need no map.
"""

import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import google.protobuf.message
import numpy as np
import onnx
import onnxruntime
from onnxruntime import GraphOptimizationLevel as Level
from onnxruntime.capi import onnxruntime_pybind11_state as onnx_runtime

from tilewright.compiler.normal.rules.normal_form import normalise
from tilewright.compiler.onnx.opset import raised
from tilewright.errors import SimulationError
from tilewright.runtime.oracle.exact_products import Kernels, kernels_here, make_exact, multiplies, multiplies_constants
from tilewright.runtime.oracle.session_changes import Change, as_the_file_says
from tilewright.runtime.oracle.unfused import fused_kinds, keep_outputs, of_several_scales, with_outputs_of

__all__ = [
    "ONNX_RUNTIME_ERRORS", "VERSION", "FloatReference", "Operator", "Reference", "SaturationError",
    "changes_by_session", "run_reference", "run_unfused", "session", "settings",
]

_INTEGERS = ("tensor(int8)", "tensor(uint8)")
_EXACT_IN_FLOAT = {"Relu", "Clip", "MaxPool", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Identity"}
"""Operators that neither round nor add: exact between a DequantizeLinear and a QuantizeLinear."""

ONNX_RUNTIME_ERRORS = (onnx_runtime.Fail, onnx_runtime.InvalidArgument, onnx_runtime.InvalidGraph,
                       onnx_runtime.InvalidProtobuf, onnx_runtime.NotImplemented, onnx_runtime.RuntimeException)
"""They have no base class of their own."""

_PROVIDERS = ["CPUExecutionProvider"]

VERSION = onnxruntime.__version__
_SETTINGS = ("CPUExecutionProvider; session.qdqisint8allowed = 1, session.disable_double_qdq_remover = 1; fused at "
             "level ORT_ENABLE_EXTENDED, then run as it is, at ORT_DISABLE_ALL")


@dataclass(frozen=True, slots=True)
class Operator:
    """A node of the model that ONNX Runtime executes; ``integer`` if it reads and writes no floats but scales."""

    op: str
    output: str
    integer: bool


class SaturationError(SimulationError):
    """ONNX Runtime's kernels saturate on this processor, and there is no exact route for a model."""


def settings() -> str:
    """Return how the reference is run on this processor."""
    return f"{_SETTINGS}; integer kernels: {kernels_here()}"


def session(model: str | Path | bytes, kernels: Kernels | None = None, level: Level = Level.ORT_ENABLE_ALL,
            threads: int = 0) -> onnxruntime.InferenceSession:
    """Return ONNX Runtime's session of a model, int8 allowed in integer kernels; untouched if those are exact.

    Without that entry about half of an int8 QDQ network silently runs in float32 on x86. ``kernels`` are this
    processor's if not given, and ``threads`` as many as it likes if 0.

    Raises
    ------
    SaturationError
        If it would compute wrong sums.
    """
    kernels = kernels or kernels_here()
    if not kernels.saturate and not of_several_scales(_read(model, external=False)):
        try:
            return _session(model, level, threads=threads)
        except ONNX_RUNTIME_ERRORS:
            fused, unfused = _fused(model, min(level, Level.ORT_ENABLE_EXTENDED, key=int), kernels)
            if not unfused:
                raise
            return _session(fused.SerializeToString(), Level.ORT_DISABLE_ALL, threads=threads)
    fused, unfused = _fused(model, min(level, Level.ORT_ENABLE_EXTENDED, key=int), kernels)
    if not unfused and not multiplies(fused) and not multiplies_constants(_read(model, external=False)):
        return _session(model, level, threads=threads)
    if untrusted := _made_exact(fused, kernels):
        raise SaturationError(untrusted)
    return _session(fused.SerializeToString(), Level.ORT_DISABLE_ALL if unfused else level, threads=threads)


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
        The executed nodes, in order.
    unfused : tuple of str
        Nodes that are computed in float, as ONNX Runtime's fusion would make an invalid model of them.
    untrusted : str
        Why its integers are not to be compared with; empty if they are.

    With ``mended``, the model is in normal form and a session changes nothing in it by itself
    (`runtime.oracle.session_changes`).
    """

    def __init__(self, model: str | Path | bytes, floats: Collection[str] = (), kernels: Kernels | None = None,
                 *, mended: bool = True) -> None:
        kernels = kernels or kernels_here()
        model = _as_the_file_says(_in_normal_form(model)) if mended else model
        fused, self.unfused = _fused(model, Level.ORT_ENABLE_EXTENDED, kernels)
        outputs = {value.name for value in fused.graph.output}
        self._session = _session(_with_all_outputs(fused), Level.ORT_DISABLE_ALL)
        self._unread = _unread_inputs(fused)
        types = _types(self._session)
        self._names = [output.name for output in self._session.get_outputs()
                       if output.name in {*outputs, *floats} or output.type in _INTEGERS]
        self.operators = _operators(fused, types)
        self.untrusted = ""
        if kernels.saturate and multiplies(fused):
            self.untrusted = _not_compared(make_exact(fused, types, kernels))
            self._session = _session(fused.SerializeToString(), Level.ORT_DISABLE_ALL)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return every integer tensor and every output for some inputs; see :func:`run_reference`."""
        feed = _fed(self._session, self._unread | dict(inputs))
        return dict(zip(self._names, self._session.run(self._names, feed), strict=True))

    @property
    def rounded_in_float(self) -> tuple[Operator, ...]:
        """Operators left in float whose result depends on it; none in a model that is wholly quantised."""
        quantisation = {"QuantizeLinear", "DequantizeLinear"}
        return tuple(operator for operator in self.operators
                     if not operator.integer and operator.op not in _EXACT_IN_FLOAT | quantisation)


def run_unfused(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the outputs of a model as it stands: with its float kernels, nothing fused."""
    alone = _session(model.SerializeToString(), Level.ORT_DISABLE_ALL)
    names = [output.name for output in alone.get_outputs()]
    known = {each.name for each in alone.get_inputs()}
    feed = _fed(alone, _unread_inputs(model) | {name: array for name, array in inputs.items() if name in known})
    return dict(zip(names, alone.run(names, feed), strict=True))


class FloatReference:
    """A float model in ONNX Runtime, not fused further, with some of its tensors visible.

    Attributes
    ----------
    names, outputs : tuple of str
        Those of the ``wanted`` that it has, and its outputs; the outputs alone.

    Raises
    ------
    SaturationError
        If integers in it would be wrong.
    """

    def __init__(self, model: Path, wanted: Iterable[str]) -> None:
        proto = onnx.load(model)
        computed = {name for node in proto.graph.node for name in node.output}
        outputs = [value.name for value in proto.graph.output]
        inner = [name for name in dict.fromkeys(wanted) if name in computed and name not in outputs]
        proto.graph.output.extend(map(onnx.helper.make_empty_tensor_value_info, inner))
        self.outputs, self.names = tuple(outputs), (*outputs, *inner)
        if untrusted := _made_exact(proto, kernels_here()):
            raise SaturationError(untrusted)
        self._session = _session(proto.SerializeToString(), Level.ORT_DISABLE_ALL)

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return those tensors for some inputs."""
        return dict(zip(self.names, self._session.run(list(self.names), _fed(self._session, inputs)), strict=True))


def _session(model: str | Path | bytes, level: Level, written: str = "",
             threads: int = 0) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    # It would make one quantisation of two, with a scale that the model does not have (double_qdq_pairs_remover.cc).
    options.add_session_config_entry("session.disable_double_qdq_remover", "1")
    # It would round the floats that are multiplied by quantised weights to 8 bits of its own (MatMulNBits).
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    # It would refuse poolings with ceil_mode of which it infers another shape than it computes (below opset 22).
    options.enable_mem_reuse = False
    options.graph_optimization_level = level
    options.log_severity_level = 4  # what goes wrong is raised, and said once
    options.optimized_model_filepath = written
    return onnxruntime.InferenceSession(model, options, providers=_PROVIDERS)


def _in_normal_form(model: str | Path | bytes) -> str | Path | bytes:
    """Return the model as it is compiled: in normal form, the model itself if it is (docs/normal-form.md)."""
    form = normalise(raised(_read(model)))
    return raised(form.proto).SerializeToString() if form.counts else model


def changes_by_session(model: str | Path | bytes) -> tuple[Change, ...]:
    """Return what a session changes in a model by itself."""
    return as_the_file_says(_read(model))


def _as_the_file_says(model: str | Path | bytes) -> str | Path | bytes:
    """Return a model in which a session changes nothing by itself: the same if it would not."""
    proto = _read(model)
    return proto.SerializeToString() if any(each.mended for each in as_the_file_says(proto)) else model


def _fused(model: str | Path | bytes, level: Level, kernels: Kernels) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Return the model that ONNX Runtime makes of one at a level of fusion, and the nodes that it must not fuse."""
    fused, unfused = _written(model, level)
    if kernels.saturate and multiplies_constants(_read(model, external=False)):
        # They are gone from the fused model, and their sums in it are wrong.
        changed = _read(model)
        _made_exact(changed, kernels)
        return _written(changed.SerializeToString(), level)
    return fused, unfused


def _written(model: str | Path | bytes, level: Level) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Return the result of :func:`_fused` where no kernel saturates.

    Where ONNX Runtime rejects what its own fusion has made of a model that it runs otherwise, nodes are left out of
    the fusion: those of one kind, or if need be of all kinds.
    """
    try:
        if nodes := of_several_scales(_read(model, external=False)):
            return _left_out(_read(model), nodes, level)
        return _write(model, level), ()
    except ONNX_RUNTIME_ERRORS as error:
        _session(model, Level.ORT_DISABLE_ALL)      # raises an error of its own if the model itself is at fault
        proto = _read(model)
        kinds = fused_kinds(proto)
        for nodes in (*kinds, [node for kind in kinds for node in kind]):
            try:
                return _left_out(proto, nodes, level)
            except ONNX_RUNTIME_ERRORS:
                continue
        raise error


def _left_out(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto],
              level: Level) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """Return the result of :func:`_fused` with ``nodes`` left out of the fusion."""
    fused = _write(with_outputs_of(model, nodes).SerializeToString(), level)
    keep_outputs(fused, model)
    return fused, tuple(node.name or node.output[0] for node in nodes)


def _write(model: str | Path | bytes, level: Level) -> onnx.ModelProto:
    """Return the model that ONNX Runtime makes of one; it leaves external data in the files of the model's folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "fused.onnx")
        _session(model, level, str(path))
        fused = onnx.load(path, load_external_data=False)
    if not isinstance(model, bytes):
        onnx.load_external_data_for_model(fused, str(Path(model).parent))
    return fused


def _read(model: str | Path | bytes, *, external: bool = True) -> onnx.ModelProto:
    try:
        if isinstance(model, bytes):
            return onnx.load_from_string(model)
        return onnx.load(model, load_external_data=external)
    except google.protobuf.message.DecodeError as error:
        raise onnx_runtime.InvalidProtobuf(f"it is no ONNX model: {error}") from error


def _fed(session_: onnxruntime.InferenceSession, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return inputs as a session takes them: half floats widened where the model was, on reading."""
    floats = {each.name for each in session_.get_inputs() if each.type == "tensor(float)"}
    return {name: array.astype(np.float32) if name in floats and array.dtype == np.float16 else array
            for name, array in inputs.items()}


def _with_all_outputs(model: onnx.ModelProto) -> bytes:
    """Make every tensor that a model computes an output, and return the model's bytes."""
    known = {value.name for value in model.graph.output}
    for node in model.graph.node:
        for name in {*node.output} - known - {""}:
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    return model.SerializeToString()


def _types(session_: onnxruntime.InferenceSession) -> dict[str, str]:
    return {value.name: value.type for value in (*session_.get_outputs(), *session_.get_inputs())}


def _made_exact(model: onnx.ModelProto, kernels: Kernels) -> str:
    """Make a model's products exact, in place; return why it is not to be compared with, or nothing."""
    if not kernels.saturate or not multiplies(model):
        return ""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    types = _types(_session(_with_all_outputs(shown), Level.ORT_DISABLE_ALL))
    return _not_compared(make_exact(model, types, kernels))


def _not_compared(left: Collection[str]) -> str:
    """Return the sentence of products that no kernel here computes exactly; nothing of none."""
    if not left:
        return ""
    return (f"not compared: ONNX Runtime saturates on this processor, in {len(left)} "
            f"{'products' if len(left) > 1 else 'product'} of integers ({', '.join(sorted(left)[:3])})")


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
