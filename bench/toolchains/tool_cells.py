"""The cost of a file of a tool: its cycles by those of the same network from plain quantize_static, and why."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

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

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_LETTERS = 240
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
        Whether it was run with ``--calibrate``, since the file leaves something in float.
    alone : int
        Cycles without ``--calibrate`` of a file that was run with it; 0 if it was not tried, or refused.
    static : ToolCell or None
        The same file with ``--calibrate``, if it is quantised at run time: it then computes in integers.
    """

    unwritten: str = ""
    invalid: str = ""
    refused: str = ""
    crashed: str = ""
    cycles: int = 0
    layers: int = 0
    why: str = ""
    calibrated: bool = False
    alone: int = 0
    static: "ToolCell | None" = None

    @property
    def counts(self) -> bool:
        """Whether it is a file that ONNX Runtime runs."""
        return not self.unwritten and not self.invalid

    def keeps(self, form: WrittenForm, plain: int) -> bool | None:
        """Tell whether it is within its limit; None if it has none or does not count."""
        limit = self.limit(form)
        if limit is None or not self.counts:
            return None
        return bool(self.cycles) and self.cycles <= limit * plain

    def limit(self, form: WrittenForm) -> float | None:
        """Return the form's limit; that of partly quantised files if it was run with ``--calibrate``."""
        return LIMITS["partly" if self.calibrated and form.limit in ("int8", "dynamic") else form.limit]


@dataclass(slots=True)
class ToolCells:
    """Measured cells, kept by the file's content and our sources."""

    sources: str

    @classmethod
    def open(cls) -> "ToolCells":
        """Return the cells of the sources as they are."""
        return cls(source_digest() + _digest_of_front_end())

    def of(self, file: Written, form: WrittenForm, samples: Path, plain: int | None = None) -> ToolCell:
        """Return the cell of a file, measured now or before.

        One that is above its limit of the ``plain`` cycles and leaves something in float is run with ``--calibrate``.
        """
        if file.error:
            return ToolCell(unwritten=file.error)
        kept = cache_folder() / "toolchains" / "cells" / f"{file.path.parent.name}-{file.path.stem}-{form.limit}.json"
        if kept.is_file():
            found = json.loads(kept.read_text(encoding="utf-8"))
            if found.pop("sources") == self.sources and (found.get("static") or form.limit != "dynamic"):
                return _cell(found)
        cell = _measured(file.path, samples, form, plain)
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_file(kept, json.dumps({**asdict(cell), "sources": self.sources}).encode())
        return cell


def _measured(path: Path, samples: Path, form: WrittenForm, plain: int | None) -> ToolCell:
    try:
        run = session(path)
        run.run(None, {run.get_inputs()[0].name: np.load(samples)["image"][:1]})
    except (*ONNX_RUNTIME_ERRORS, Error) as error:
        text = str(error).splitlines()[0].replace(str(path), "the file")
        for before in ("Status Message: ", "&) ", ", Error "):      # ONNX Runtime says the cause last.
            text = text.rpartition(before)[2]
        return ToolCell(invalid=text[:_LETTERS])
    cell = ToolCell(**_tried(lambda: _predicted(path, None)))
    if form.limit == "dynamic":
        return replace(cell, static=replace(ToolCell(**_tried(lambda: _predicted(path, samples))), calibrated=True))
    if plain is None or form.limit not in ("int8", "partly") or cell.keeps(form, plain) or not _leaves_float(path):
        return cell
    return replace(ToolCell(**_tried(lambda: _predicted(path, samples))), calibrated=True, alone=cell.cycles)


def _cell(found: dict[str, Any]) -> ToolCell:
    """Return the cell of which `asdict` gave the fields."""
    static = found.pop("static", None)
    return ToolCell(**found, static=ToolCell(**static) if static else None)


def _leaves_float(path: Path) -> bool:
    """Tell whether ``--calibrate`` has something to quantise in a file."""
    try:
        return bool(find_model(str(path), Silence()).in_float)
    except Error:
        return True


def _predicted(path: Path, samples: Path | None) -> dict[str, Any]:
    source = find_model(str(path), Silence(), calibrate=samples)
    report = predict_model(source, Design(machine=preset(DEFAULT_MACHINE)), BEST, Silence()).report
    return {"cycles": report.cycles, "layers": len(report.layers), "why": _why(report, source.path)}


def _why(report: Report, path: Path) -> str:
    """Return what the host core spends its cycles with, and products that int8 does not hold."""
    said = [f"{round(100 * cause.share)} % {cause.operator}: {cause.reason}"
            for cause in report.core_share.causes if cause.share > _LARGE]
    if count := _beyond_int8(path):
        said.append(f"Weights of {count} products less their zero point leave int8: "
                    f"what is beyond is added lane group by lane group")
    if not said:
        said = [f"{round(100 * layer.cycles / report.cycles)} % {layer.name!r}: a pass of its own over the tensor"
                for layer in report.layers if layer.kind == "pass" and layer.cycles > _LARGE * report.cycles]
    return "; ".join(said)


def _beyond_int8(path: Path) -> int:
    """Return how many products of a model in normal form have weights that int8 does not hold."""
    graph = onnx.load(path).graph
    given = {tensor.name: tensor for tensor in graph.initializer}
    pairs = {node.output[0]: tuple(node.input)[::2] for node in graph.node if node.op_type == "DequantizeLinear"}
    found = [(node.input[3], node.input[5]) if node.op_type.startswith("QLinear") else pairs.get(node.input[1], ())
             for node in graph.node if node.op_type.removeprefix("QLinear") in _PRODUCTS]
    return sum(len(pair) == 2 and all(name in given for name in pair)
               and _leaves_int8(*(onnx.numpy_helper.to_array(given[name]) for name in pair)) for pair in found)


def _leaves_int8(levels: np.ndarray, zero: np.ndarray) -> bool:
    """Tell whether weights of one zero point less it are beyond int8."""
    if zero.size > 1 or levels.dtype.itemsize > 1:
        return False
    found = levels.astype(np.int16) - zero.astype(np.int16)
    return bool(found.size and (found.min() < -128 or found.max() > 127))


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
