"""The only access to LiteRT and TensorFlow Lite Micro: every tensor of a .tflite file as these engines compute it.

Both are extras (`pip install 'tilewright[tflite]'`), and imported when they are asked for. Each rounds in its own
way, and we equal the one that ``--reference`` of ``run`` names (docs/tflite.md).
"""

import importlib
import importlib.metadata
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.mark import EngineName
from tilewright.errors import InputError

__all__ = ["LITERT_SETTINGS", "LitertSession"]

LITERT_SETTINGS: dict[EngineName, str] = {
    "litert": "default session (XNNPACK), every tensor kept",
    "litert-reference": "reference kernels (OpResolverType.BUILTIN_REF), every tensor kept",
    "tflm": "interpreter of the Python package, every tensor kept",
}

_RESOLVERS = {"litert": "AUTO", "litert-reference": "BUILTIN_REF"}
_PACKAGES = {"litert": "ai-edge-litert", "litert-reference": "ai-edge-litert", "tflm": "tflite-micro"}
_MODULES = {"litert": "ai_edge_litert.interpreter", "litert-reference": "ai_edge_litert.interpreter",
            "tflm": "tflite_micro.python.tflite_micro.runtime"}
_ARENA_BYTES = 1 << 25
_FIRST = (0, 3, 1, 2)


class LitertSession:
    """A .tflite file in one of the engines.

    Parameters
    ----------
    file : Path
        The .tflite file.
    name : {"litert", "litert-reference", "tflm"}
    read : Path
        The ONNX model that was read from the file; its tensors are called the same.

    Attributes
    ----------
    operators : dict of str to str
        TensorFlow Lite's operator of each node of the ONNX model, by the node's name.

    Raises
    ------
    InputError
        If the package is not installed, or the engine refuses the file.
    """

    def __init__(self, file: Path, name: EngineName, read: Path) -> None:
        self._content, self._name, self._file = file.read_bytes(), name, file
        self._model = read_file(self._content, f"Model {file.name!r}")
        try:
            self._engine: Any = importlib.import_module(_MODULES[name])
        except ImportError as error:
            raise InputError(f"Option --reference {name} needs the package {_PACKAGES[name]}, and it is not installed; "
                             f"pip install 'tilewright[tflite]' brings it") from error
        self.version = importlib.metadata.version(_PACKAGES[name])
        tensors = self._model.tensors
        makers = {tensors[index].name: each.kind for each in self._model.operators for index in each.outputs}
        self.operators: dict[str, str] = {}
        for node in onnx.load(read, load_external_data=False).graph.node:
            known = [made for made in makers if node.name == made or node.name.startswith((f"{made}:", f"{made} ("))]
            if known:
                self.operators[node.name] = makers[max(known, key=len)]

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return every tensor by its name in the ONNX model; those of four axes have their channels first there.

        Raises
        ------
        InputError
            If the engine refuses the file.
        """
        given = {index: np.ascontiguousarray(inputs[self._model.tensors[index].name])
                 for index in self._model.inputs if index not in self._model.state}
        try:
            found = self._micro(given) if self._name == "tflm" else self._litert(given)
        except (RuntimeError, ValueError) as error:
            raise InputError(f"Model {self._file.name!r} cannot be compared with --reference {self._name}, because "
                             f"the engine rejects it: {str(error).splitlines()[0]:.300}") from error
        named: dict[str, np.ndarray] = {}
        for index, values in found.items():
            name = self._model.tensors[index].name
            first = values.transpose(_FIRST) if values.ndim == len(_FIRST) else values
            public = index in self._model.outputs and index not in self._model.state.values()
            named |= {name: values if public else first, f"{name} (channels first)": first}
        return named

    @property
    def _computed(self) -> list[int]:
        """The tensors that the file's own operators compute."""
        return [index for each in self._model.operators if each.index >= 0 for index in each.outputs]

    def _litert(self, given: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")     # that keeping all tensors takes memory
            engine = self._engine.Interpreter(
                model_content=self._content, experimental_preserve_all_tensors=True,
                experimental_op_resolver_type=getattr(self._engine.OpResolverType, _RESOLVERS[self._name]))
        for index, values in given.items():
            engine.resize_tensor_input(index, values.shape)
        engine.allocate_tensors()
        for index, values in given.items():
            engine.set_tensor(index, values)
        engine.invoke()
        found: dict[int, np.ndarray] = {}
        for index in self._computed:
            try:
                found[index] = engine.get_tensor(index)
            except ValueError:
                continue    # XNNPACK has made it part of another, and keeps no data of it
        return found

    def _micro(self, given: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        engine = self._engine.Interpreter.from_bytes(
            self._content, arena_size=_ARENA_BYTES,
            intrepreter_config=self._engine.InterpreterConfig.kPreserveAllTensors)
        for place, index in enumerate(self._model.inputs):
            engine.set_input(given[index], place)
        engine.invoke()
        return {index: np.asarray(engine.GetTensor(index, 0)["tensor_data"]).reshape(self._model.tensors[index].shape)
                for index in self._computed}
