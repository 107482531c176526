"""ONNX's own backend interface, ``onnx.backend.base.Backend``: any program written for it runs on Tilewright.

Nothing is quantised here. Graphs of integers, QDQ and QOperator run on the datapath, and what it does not compute runs
on the host core, which of a float model is all of it. To have a float model on the datapath, quantise it first, as
``tilewright compile`` does.
"""

import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.base
from onnx import ModelProto, NodeProto, helper, numpy_helper

from tilewright.compiler.errors import CompileError, UnsupportedModelError
from tilewright.compiler.graph.onnx_names import RECOGNISED
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.onnx.cleaning import expand_functions, inline_functions
from tilewright.compiler.onnx.half_floats import has_half_floats
from tilewright.errors import FloatOnCoreWarning, InputError, SimulationError
from tilewright.isa.machine import Machine
from tilewright.runtime.execution.engines import EngineName
from tilewright.runtime.execution.report import Report
from tilewright.runtime.session import InferenceSession

__all__ = [
    "Backend", "BackendRep", "is_compatible", "parameters", "prepare", "run_model", "run_node", "supports_device",
]

_MODEL_FILE = "model.onnx"

# Inputs that must be known to compile a node: those of the host core's kernels, of operators that become others, and
# weights and quantisation of those that the datapath computes.
_PARAMETERS: dict[str, frozenset[int]] = {
    **{op: frozenset(kernel.parameters) - kernel.computable for op, kernel in KERNELS.items()},
    "Split": frozenset({1}), "ConstantOfShape": frozenset({0}), "Range": frozenset({0, 1, 2}),
    "Dropout": frozenset({2}), "QLinearConv": frozenset(range(1, 9)), "QLinearMatMul": frozenset(range(1, 8))}


class BackendRep(onnx.backend.base.BackendRep):
    """A model ready to run.

    Parameters
    ----------
    model : ModelProto
        Inlined and checked.
    machine : str or Machine, optional
        As for `InferenceSession`.
    engine : {"fast", "rtl"}

    Raises
    ------
    CompileError
        If the model cannot be compiled.

    Notes
    -----
    The hardware runs programs whose shapes are fixed, and weights and scales. Inputs that fix them (the shape of a
    Reshape, the axes of a ReduceSum, the scales of a QLinearConv) are known when the model runs: such a model is
    compiled then, and again for other values.
    """

    def __init__(self, model: ModelProto, machine: str | Machine | None = None, engine: EngineName = "fast") -> None:
        self._model, self._machine, self._engine = model, machine, engine
        constants = {tensor.name for tensor in model.graph.initializer}
        self._names = [value.name for value in model.graph.input if value.name not in constants]
        self._parameters = parameters(model) & set(self._names)
        self._bound: dict[str, np.ndarray] = {}
        self._session = None if self._parameters else self._compiled({})

    def run(self, inputs: Any, **kwargs: Any) -> tuple[np.ndarray, ...]:
        """Return all outputs.

        Parameters
        ----------
        inputs : sequence of ndarray, mapping of str to ndarray, or ndarray
            In the order of the model's inputs that are no constants, or by name, or the only one.
        **kwargs
            None are known.

        Raises
        ------
        CompileError
            If the model cannot be compiled for the values of inputs that fix shapes.
        InputError
            If inputs are missing or of another type or shape.
        SimulationError
            If the program does not end correctly.
        """
        if kwargs:
            raise InputError(f"Run must have no options, not {', '.join(kwargs)}")
        feed = self._feed(inputs)
        bound = {name: feed.pop(name) for name in self._parameters}
        if self._session is None or not _same(bound, self._bound):
            self._session, self._bound = self._compiled(bound), bound
        # Inputs that nothing reads, as the ratio of a Dropout, are none of the compiled model's.
        read = {argument.name: feed[argument.name] for argument in self._session.get_inputs()}
        return tuple(self._session.run([value.name for value in self._model.graph.output], read))

    @property
    def report(self) -> Report:
        """The cost of the last run.

        Raises
        ------
        SimulationError
            If there was no run.
        """
        if self._session is None:
            raise SimulationError("Model has a report only after a run")
        return self._session.report

    def _feed(self, inputs: Any) -> dict[str, np.ndarray]:
        if isinstance(inputs, np.ndarray):
            inputs = [inputs]
        if not isinstance(inputs, Mapping):
            if len(inputs) != len(self._names):
                raise InputError(f"Inputs must be {len(self._names)} ({', '.join(self._names)}), not {len(inputs)}")
            inputs = dict(zip(self._names, inputs, strict=True))
        if inputs.keys() != set(self._names):
            raise InputError(f"Inputs must be {', '.join(self._names)}, not {', '.join(inputs) or 'none'}")
        return {name: np.asarray(array) for name, array in inputs.items()}

    def _compiled(self, bound: Mapping[str, np.ndarray]) -> InferenceSession:
        with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
            file = Path(folder) / _MODEL_FILE
            file.write_bytes(_with_constants(self._model, bound).SerializeToString())
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FloatOnCoreWarning)  # a backend is asked for floats
                return InferenceSession(file, self._machine, self._engine)


class Backend(onnx.backend.base.Backend):
    """The class that ``onnx.backend.test`` and programs for ONNX backends ask."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Compile ``model``.

        Parameters
        ----------
        model : ModelProto
        device : str
            ``CPU`` in ONNX's terms, which knows no others but CUDA.
        **kwargs
            ``machine`` and ``engine``, as for `InferenceSession`.

        Raises
        ------
        CompileError
            If the model is invalid or not supported; if inputs fix its shapes, that may first show when it runs.
        InputError
            If device, machine or engine are unknown.
        """
        if not cls.supports_device(device):
            raise InputError(f"Device must be CPU, not {device!r}")
        if unknown := kwargs.keys() - {"machine", "engine"}:
            raise InputError(f"Options must be of machine, engine, not {', '.join(sorted(unknown))}")
        super().prepare(model, device)
        if has_half_floats(model):
            raise UnsupportedModelError("Model must have no half floats, because results must have the stated types",
                                        "convert it to float32")
        return BackendRep(inline_functions(model), **kwargs)

    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Tell whether :meth:`prepare` takes ``model``."""
        try:
            cls.prepare(model, device, **kwargs)
        except (CompileError, InputError, onnx.checker.ValidationError):
            return False
        return True

    @classmethod
    def run_node(cls, node: NodeProto, inputs: Any, device: str = "CPU",
                 outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
                 **kwargs: Any) -> tuple[np.ndarray, ...]:
        """Return the outputs of one node.

        Parameters
        ----------
        node : NodeProto
        inputs : sequence of ndarray
            For those of the node's inputs that have a name.
        device : str
        outputs_info : sequence of (dtype, shape), optional
            Not needed: ONNX's inference tells them.
        **kwargs
            ``opset_version``, the newest if left out, and those of :meth:`prepare`.

        Raises
        ------
        CompileError, InputError, SimulationError
            As for a model.
        """
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        super().run_node(node, inputs, device, outputs_info, opset_version=version)
        return cls.prepare(_model_of_node(node, inputs, version), device, **kwargs).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Tell whether ``device`` is ``CPU``, with any number."""
        return device.partition(":")[0] == "CPU"


def _model_of_node(node: NodeProto, inputs: Sequence[np.ndarray], version: int) -> ModelProto:
    """Return a model of one node at opset ``version`` whose inputs have the types and shapes of ``inputs``."""
    names = list(dict.fromkeys(name for name in node.input if name))
    if len(names) != len(inputs):
        raise InputError(f"Inputs must be {len(names)} ({', '.join(names)}), not {len(inputs)}")
    values = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in zip(names, map(np.asarray, inputs), strict=True)]
    outputs = [helper.make_empty_tensor_value_info(name) for name in node.output if name]
    domains = {"": version} if node.domain in ("", "ai.onnx") else {"": version, node.domain: 1}
    model = helper.make_model(helper.make_graph([node], "node", values, outputs),
                              opset_imports=[helper.make_opsetid(domain, each) for domain, each in domains.items()])
    arrays = dict(zip(names, map(np.asarray, inputs), strict=True))
    known = _with_constants(model, {name: arrays[name] for name in parameters(model) if name in arrays})
    inferred = onnx.shape_inference.infer_shapes(known, data_prop=True)
    for value, found in zip(model.graph.output, inferred.graph.output, strict=True):
        value.CopyFrom(found)
    return model


def parameters(model: ModelProto) -> set[str]:
    """Return the names of values that must be known to compile ``model``, and of all that they are computed from."""
    graph = expand_functions(model, RECOGNISED | KERNELS.keys()).graph
    makers = {name: node for node in graph.node for name in node.output}
    names = [name for node in graph.node for index, name in enumerate(node.input)
             if index in _PARAMETERS.get(node.op_type, ()) and name]
    found: set[str] = set()
    while names:
        name = names.pop()
        # Shapes are known of every tensor; only its values would be those of an input.
        if name not in found and not (name in makers and makers[name].op_type == "Shape"):
            found.add(name)
            names += [each for each in makers[name].input if each] if name in makers else []
    return found


def _with_constants(model: ModelProto, values: Mapping[str, np.ndarray]) -> ModelProto:
    """Return ``model`` with those of its inputs as constants."""
    bound = ModelProto()
    bound.CopyFrom(model)
    kept = [value for value in model.graph.input if value.name not in values]
    del bound.graph.input[:]
    bound.graph.input.extend(kept)
    bound.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in values.items())
    return bound


def _same(left: Mapping[str, np.ndarray], right: Mapping[str, np.ndarray]) -> bool:
    return left.keys() == right.keys() and all(
        left[name].dtype == right[name].dtype and left[name].shape == right[name].shape
        and left[name].tobytes() == right[name].tobytes() for name in left)


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
is_compatible = Backend.is_compatible
supports_device = Backend.supports_device
