"""What LiteRT computes of the cases of `tests.support.tflite_cases` and of MLPerf's networks, as committed.

``python -m tests.support.litert_results`` computes it again, and needs the extra: pip install 'tilewright[tflite]'.
"""

import hashlib
import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.tflite_cases import CASES, content_of
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.tensors import TfliteModel
from tilewright.models import FOLDER, PUBLISHED

__all__ = ["committed_results", "feeds", "fingerprint", "fingerprints", "litert_tensors"]

_HERE = Path(__file__).parents[1] / "compiler" / "tflite"
_CASES, _NETWORKS = _HERE / "litert_cases.npz", _HERE / "litert_networks.json"


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
    return {index: engine.get_tensor(index) for operator in model.operators for index in operator.outputs}


def committed_results() -> Mapping[str, np.ndarray]:
    """Return the outputs of the cases, each by "case/number of the output"."""
    return np.load(_CASES)


def fingerprint(values: np.ndarray) -> str:
    """Return a hash of a tensor's bytes, its channels last."""
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()[:16]


def fingerprints() -> dict[str, dict[str, str]]:
    """Return the fingerprints of the tensors of each of MLPerf's networks, by name."""
    return json.loads(_NETWORKS.read_text())["networks"]


def _record() -> None:
    results = {}
    for name in CASES:
        content = content_of(name)
        model = read_file(content, name)
        found = litert_tensors(content, model, feeds(model))
        results |= {f"{name}/{number}": found[index] for number, index in enumerate(model.outputs)}
    np.savez_compressed(_CASES, **results)
    networks = {}
    for name in PUBLISHED:
        content = (FOLDER / f"{name}.tflite").read_bytes()
        model = read_file(content, name)
        found = litert_tensors(content, model, feeds(model))
        networks[name] = {model.tensors[index].name: fingerprint(values) for index, values in found.items()}
    version = importlib.import_module("importlib.metadata").version("ai-edge-litert")
    _NETWORKS.write_text(json.dumps({"litert": version, "networks": networks}, indent=1) + "\n")


if __name__ == "__main__":
    _record()
