"""The cost of a file of a tool: its cycles by those of the same network from plain quantize_static, and why."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.bench.figure_store import source_digest
from tilewright.bench.toolchains.environments import Written
from tilewright.bench.toolchains.tool_list import LIMITS, WrittenForm
from tilewright.compiler.network.options import BEST
from tilewright.errors import Error
from tilewright.isa.machine import DEFAULT_MACHINE, preset
from tilewright.runtime.compared_run import ONNX_RUNTIME_ERRORS
from tilewright.runtime.design.design import Design
from tilewright.runtime.execution.report import Report
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.predicted_run import predict_model
from tilewright.tools.files import write_file
from tilewright.tools.progress import Silence
from tilewright.tools.toolchain import cache_folder

__all__ = ["ToolCell", "ToolCells"]

_LARGE = 0.1
"""Of all cycles: smaller causes are not named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCell:
    """Findings on one form of one network.

    Attributes
    ----------
    unwritten, invalid : str
        What the tool said that did not write it, and ONNX Runtime that does not run it; empty otherwise.
    refused, crashed : str
        Tilewright's refusal, or an exception.
    cycles, layers : int
    why : str
        What takes the cycles that are on the host core.
    calibrated : bool
        Whether it was run with ``--calibrate``.
    """

    unwritten: str = ""
    invalid: str = ""
    refused: str = ""
    crashed: str = ""
    cycles: int = 0
    layers: int = 0
    why: str = ""
    calibrated: bool = False

    @property
    def counts(self) -> bool:
        """Whether it is a file that ONNX Runtime runs."""
        return not self.unwritten and not self.invalid

    def keeps(self, form: WrittenForm, plain: int) -> bool | None:
        """Tell whether it is within the form's limit; None if it has none or does not count."""
        limit = LIMITS[form.limit]
        if limit is None or not self.counts:
            return None
        return bool(self.cycles) and self.cycles <= limit * plain


@dataclass(slots=True)
class ToolCells:
    """Measured cells, kept by the file's content and our sources."""

    sources: str

    @classmethod
    def open(cls) -> "ToolCells":
        """Return the cells of the sources as they are."""
        return cls(source_digest() + _digest_of_front_end())

    def of(self, file: Written, form: WrittenForm, samples: Path) -> ToolCell:
        """Return the cell of a file, measured now or before."""
        if file.error:
            return ToolCell(unwritten=file.error)
        kept = cache_folder() / "toolchains" / "cells" / f"{file.path.parent.name}-{file.path.stem}-{form.limit}.json"
        if kept.is_file():
            found = json.loads(kept.read_text(encoding="utf-8"))
            if found.pop("sources") == self.sources:
                return ToolCell(**found)
        cell = _measured(file.path, samples, calibrates=form.limit == "partly")
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_file(kept, json.dumps({**asdict(cell), "sources": self.sources}).encode())
        return cell


def _measured(path: Path, samples: Path, *, calibrates: bool) -> ToolCell:
    try:
        run = session(path)
        run.run(None, {run.get_inputs()[0].name: np.load(samples)["image"][:1]})
    except (*ONNX_RUNTIME_ERRORS, Error) as error:
        return ToolCell(invalid=str(error).splitlines()[0][:300])
    found = _tried(lambda: _predicted(path, samples if calibrates else None))
    if calibrates and "already quantised" in str(found.get("refused", "")):
        found = _tried(lambda: _predicted(path, None))
    return ToolCell(**found)


def _predicted(path: Path, samples: Path | None) -> dict[str, Any]:
    source = find_model(str(path), Silence(), calibrate=samples)
    report = predict_model(source, Design(machine=preset(DEFAULT_MACHINE)), BEST, Silence()).report
    return {"cycles": report.cycles, "layers": len(report.layers), "why": _why(report),
            "calibrated": samples is not None}


def _why(report: Report) -> str:
    return "; ".join(f"{round(100 * cause.share)} % {cause.operator}: {cause.reason}"
                     for cause in report.core_share.causes if cause.share > _LARGE)


def _tried(predict: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return predict()
    except Error as error:
        return {"refused": error.sentence}
    except Exception as error:  # noqa: BLE001
        return {"crashed": f"{type(error).__name__}: {error}"[:300]}


def _digest_of_front_end() -> str:
    """Return a hash of what `figure_store` leaves out: how files are read and quantised."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted((root / "runtime").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
