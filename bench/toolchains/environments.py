"""Environments of the tools, and the files that they write; both are kept, by a hash of what they were made from."""

import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.bench.toolchains.onnx_builder import float_model
from tilewright.bench.toolchains.tool_list import QuantiserTool
from tilewright.bench.toolchains.writers.networks import SHAPES, samples
from tilewright.errors import ToolError
from tilewright.tools.files import write_file
from tilewright.tools.toolchain import cache_folder

__all__ = ["Written", "environment", "network_files", "written"]

_WRITERS = Path(__file__).with_name("writers")
_ROOT = Path(__file__).resolve().parents[2]
_SHARED = ("writer_job.py", "torch_builder.py")
_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Written:
    """A file that a tool has written, or what it said instead."""

    path: Path
    error: str = ""


def environment(tool: QuantiserTool) -> Path:
    """Return the Python of the tool's environment, installed on first use.

    Raises
    ------
    ToolError
        If it cannot be installed.
    """
    pins = _pins(tool)
    folder = _folder() / f"{tool.module}-{_digest(' '.join(tool.packages) + _text(pins))}"
    python, done, failed = folder / "bin" / "python", folder / "installed", folder / "failed"
    if failed.is_file():
        raise ToolError(failed.read_text(encoding="utf-8"))
    if not done.is_file():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], tool.name)
        try:
            _run([str(python), "-m", "pip", "install", "--disable-pip-version-check", "-q", *tool.packages,
                  *(["-c", str(pins)] if pins.is_file() else [])], tool.name)
        except ToolError as error:
            failed.write_text(str(error), encoding="utf-8")
            raise
        done.touch()
    return python


def network_files(name: str) -> tuple[Path, Path]:
    """Return the float model of a network and its samples, written on first use."""
    content = float_model(name).SerializeToString(deterministic=True)
    folder = _folder() / f"{name}-{hashlib.sha256(content).hexdigest()[:12]}"
    model, images = folder / f"{name}.onnx", folder / "samples.npz"
    if not images.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_file(model, content)
        np.savez(images, image=samples(SHAPES[name]))
    return model, images


def written(tool: QuantiserTool, network: str) -> list[Written]:
    """Return the files of all forms of a tool for a network, in order, written now if need be.

    Raises
    ------
    ToolError
        If its environment cannot be installed.
    """
    model, images = network_files(network)
    sources = "".join((_WRITERS / name).read_text(encoding="utf-8") for name in (*_SHARED, f"{tool.module}.py")
                      if (_WRITERS / name).is_file())
    forms: list[dict[str, Any]] = []
    for form in tool.forms:
        made_from = json.dumps([sources, tool.packages, _text(_pins(tool)), dict(form.arguments)], sort_keys=True)
        target = model.parent / f"{tool.module}-{_digest(made_from)}.onnx"
        forms.append({"arguments": dict(form.arguments), "target": str(target)})
    missing = [each for each in forms if not _is_there(Path(each["target"]))]
    if missing:
        python = environment(tool)
        job = model.parent / f"{tool.module}.json"
        job.write_text(json.dumps({"network": network, "model": str(model), "samples": str(images),
                                   "forms": missing}), encoding="utf-8")
        said = _run([str(python), "-m", f"tilewright.bench.toolchains.writers.{tool.module}", str(job)], tool.name,
                    may_fail=True)
        for each in missing:
            target = Path(each["target"])
            if not _is_there(target):
                target.with_suffix(".error").write_text(said or "wrote nothing", encoding="utf-8")
    return [_result(Path(each["target"])) for each in forms]


def _pins(tool: QuantiserTool) -> Path:
    """Return the list of every package of the tool's environment, with its version, as pip takes it."""
    return _WRITERS.with_name("pins") / f"{tool.module}.txt"


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _is_there(target: Path) -> bool:
    return target.is_file() or target.with_suffix(".error").is_file()


def _result(target: Path) -> Written:
    error = target.with_suffix(".error")
    return Written(target, error.read_text(encoding="utf-8")) if error.is_file() else Written(target)


def _folder() -> Path:
    """Return where everything is kept, also what tools leave in the folder that they run in."""
    folder = cache_folder() / "toolchains"
    folder.mkdir(exist_ok=True)
    return folder


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _run(command: list[str], name: str, *, may_fail: bool = False) -> str:
    """Run a command and return the last line that it says of an error; what it prints is not shown."""
    variables = {**os.environ, "PYTHONPATH": str(_ROOT), "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, env=variables,
                              cwd=_folder(), check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError(f"Environment of {name} could not be used: {error}") from error
    cause = _cause(done.stderr)
    if done.returncode and not may_fail:
        raise ToolError(f"Environment of {name} could not be installed: {cause}")
    return cause if done.returncode else ""


def _cause(said: str) -> str:
    """Return the first line that pip calls an error, else the last line, without the name of a host."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    found = next((line for line in lines if line.startswith("ERROR:")), lines[-1] if lines else "")
    return re.sub(r"https?://\S+", "…", found)[:300]
