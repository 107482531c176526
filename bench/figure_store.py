"""Saved figures: each run is done once, so that an interrupted bench continues where it was."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.tools.files import write_file
from tilewright.tools.toolchain import cache_folder

__all__ = ["FILES", "SOURCES", "FigureStore", "source_digest"]

SOURCES = Path(__file__).resolve().parents[1]
_FOLDERS = ("isa", "compiler", "rtl", "sim")
FILES = (
    "energy/actions.py", "energy/activity.py", "energy/activity.toml", "energy/registers.py",
    *(f"runtime/{name}.py" for name in (
        "baseline/core_alone", "baseline/scaling", "compared_run", "execution/accounting", "execution/engines",
        "execution/job", "execution/records", "execution/report", "model_source", "oracle/comparison",
        "oracle/conversion", "oracle/exact_products", "oracle/expected_tensors", "oracle/inputs", "oracle/onnx_runtime",
        "session")),
    *(f"bench/{name}.py" for name in ("baselines", "counted_work", "figure_store", "runs")))
_SUFFIXES = (".py", ".sv", ".vlt", ".cpp", ".h", ".c", ".S", ".ld", ".toml")
"""Sources on which figures depend, besides the model."""

_APART = ("rtl/bus/wishbone", "compiler/emit/board_image", "compiler/c/board")
"""Of these no count depends on: prices, which are looked up anew, and what is made beside simulations."""


@dataclass(slots=True)
class FigureStore:
    """Results by what they were made from: a case, its model's contents, and the sources as they are at the start."""

    folder: Path
    sources: str
    fresh: bool = False

    @classmethod
    def open(cls, folder: Path | None = None, *, fresh: bool = False) -> "FigureStore":
        """Return the store in ``folder``, or in the cache; a ``fresh`` one starts empty."""
        place = folder or cache_folder() / "benchmarks"
        place.mkdir(parents=True, exist_ok=True)
        return cls(place, source_digest(), fresh)

    def get(self, what: str, model: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the result of ``make`` for ``what`` and ``model``, from now or from an earlier run."""
        key = hashlib.sha256(f"{what}\n{self.sources}\n".encode() + model.read_bytes()).hexdigest()
        path = self.folder / f"{key}.json"
        if path.is_file() and not self.fresh:
            return dict(json.loads(path.read_text(encoding="utf-8"))["result"])
        result = make()
        write_file(path, (json.dumps({"case": what, "result": result}, indent=2) + "\n").encode())
        return result


def source_digest() -> str:
    """Return a hash of everything that compiles, simulates and prices."""
    digest = hashlib.sha256()
    folders = [path for folder in _FOLDERS for path in sorted((SOURCES / folder).rglob("*"))
               if path.suffix in _SUFFIXES and path.is_file()
               and not path.relative_to(SOURCES).as_posix().startswith(_APART)]
    for path in (*folders, *(SOURCES / name for name in FILES)):
        digest.update(f"{path.relative_to(SOURCES)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
