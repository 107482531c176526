"""What LiteRT computes of the cases of `tests.support.tflite_cases` and of MLPerf's networks, as committed.

``python -m tests.support.litert_results`` computes it again, and needs the extra: pip install 'tilewright[tflite]'.
"""

import hashlib
import importlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.tflite_cases import CASES, content_of
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.mark import ENGINES, EngineName
from tilewright.compiler.tflite.stored.tensors import TfliteModel
from tilewright.models import FOLDER, PUBLISHED

__all__ = ["KERNELS", "committed_results", "engine_tensors", "feeds", "fingerprint", "fingerprints", "kernel_results",
           "litert_tensors"]

_HERE = Path(__file__).parents[1] / "compiler" / "tflite"
_CASES, _NETWORKS, _KERNEL_CASES = (_HERE / name for name in (
    "litert_cases.npz", "litert_networks.json", "kernel_cases.npz"))
_ARENA = 1 << 25

KERNELS: tuple[EngineName, ...] = ("litert-reference", "tflm")
"""The engines that requantise in whole numbers."""


def feeds(model: TfliteModel, seed: int = 0) -> dict[int, np.ndarray]:
    """Return seeded values of a model's inputs, by tensor: over the whole range of bytes, or normal floats."""
    rng = np.random.default_rng(seed)
    found: dict[int, np.ndarray] = {}
    for index in model.inputs:
        tensor = model.tensors[index]
        if tensor.dtype in ("int8", "uint8"):
            ends = np.iinfo(tensor.dtype)
            found[index] = rng.integers(ends.min, ends.max + 1, tensor.shape).astype(tensor.dtype)
        else:
            found[index] = rng.normal(0, 1, tensor.shape).astype(tensor.dtype)
    return found


def litert_tensors(content: bytes, model: TfliteModel, given: Mapping[int, np.ndarray],
                   resolver: str = "AUTO") -> dict[int, np.ndarray]:
    """Return every tensor that LiteRT computes, by number; ``resolver`` is one of its OpResolverType."""
    litert: Any = importlib.import_module("ai_edge_litert.interpreter")
    engine = litert.Interpreter(model_content=content, experimental_preserve_all_tensors=True,
                                experimental_op_resolver_type=getattr(litert.OpResolverType, resolver))
    for index, values in given.items():
        engine.resize_tensor_input(index, values.shape)
    engine.allocate_tensors()
    for index, values in given.items():
        engine.set_tensor(index, values)
    engine.invoke()
    return {index: engine.get_tensor(index) for index in _shown(model)}


def _shown(model: TfliteModel) -> list[int]:
    """Return the tensors that the file's own operators write, without those of branches."""
    return [index for operator in model.operators if operator.index >= 0 for index in operator.outputs]


def engine_tensors(content: bytes, model: TfliteModel, given: Mapping[int, np.ndarray],
                   engine: EngineName) -> dict[int, np.ndarray]:
    """Return every tensor that an engine computes, by number.

    Raises
    ------
    RuntimeError or ValueError
        If the engine does not take the file.
    """
    if engine != "tflm":
        return litert_tensors(content, model, given, "AUTO" if engine == "litert" else "BUILTIN_REF")
    runtime: Any = importlib.import_module("tflite_micro.python.tflite_micro.runtime")
    micro = runtime.Interpreter.from_bytes(content, arena_size=_ARENA,
                                           intrepreter_config=runtime.InterpreterConfig.kPreserveAllTensors)
    for place, index in enumerate(model.inputs):
        micro.set_input(given[index], place)
    micro.invoke()
    return {index: np.asarray(micro.GetTensor(index, 0)["tensor_data"]).reshape(model.tensors[index].shape)
            for index in _shown(model)}


def committed_results() -> Mapping[str, np.ndarray]:
    """Return the outputs of the cases, each by "case/number of the output"."""
    return np.load(_CASES)


def kernel_results() -> Mapping[str, np.ndarray]:
    """Return the same of `KERNELS`, each by "engine/case/number of the output", for cases that the engine takes."""
    return np.load(_KERNEL_CASES)


def fingerprint(values: np.ndarray) -> str:
    """Return a hash of a tensor's bytes, its channels last."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def fingerprints(engine: EngineName = "litert") -> dict[str, dict[str, str]]:
    """Return the fingerprints of the tensors of each of MLPerf's networks, by name."""
    return json.loads(_NETWORKS.read_text())["networks" if engine == "litert" else engine]


def _record() -> None:
    results = {}
    for name in CASES:
        content = content_of(name)
        model = read_file(content, name)
        found = litert_tensors(content, model, feeds(model))
        results |= {f"{name}/{number}": found[index] for number, index in enumerate(model.outputs)}
    np.savez_compressed(_CASES, **results)
    np.savez_compressed(_KERNEL_CASES, **{key: value for engine in KERNELS for key, value in _recorded(engine)})
    networks: dict[str, Any] = {name: {} for name in ("litert", "networks", *KERNELS)}
    for name in PUBLISHED:
        content = (FOLDER / f"{name}.tflite").read_bytes()
        model = read_file(content, name)
        for engine in ENGINES:
            found = engine_tensors(content, model, feeds(model), engine)
            networks["networks" if engine == "litert" else engine][name] = {
                model.tensors[index].name: fingerprint(values) for index, values in found.items()}
    networks["litert"] = importlib.import_module("importlib.metadata").version("ai-edge-litert")
    _NETWORKS.write_text(json.dumps(networks, indent=1) + "\n")


def _recorded(engine: EngineName) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the outputs of the cases that an engine takes."""
    for name in CASES:
        content = content_of(name)
        model = read_file(content, name)
        try:
            found = engine_tensors(content, model, feeds(model), engine)
        except (RuntimeError, ValueError):
            continue
        yield from ((f"{engine}/{name}/{number}", found[index]) for number, index in enumerate(model.outputs))


if __name__ == "__main__":
    _record()
