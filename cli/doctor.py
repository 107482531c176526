"""The command ``doctor``: one finding per tool, whether it is found and runs, and how to get a missing one."""

import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING

import typer
from packaging.requirements import Requirement

from tilewright.cli.options.refusals import FAILED
from tilewright.tools.toolchain import ToolMissingError, verilator_environment, yosys_command

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["PYTHON", "SECONDS", "Finding", "doctor", "doctor_table", "examine", "register"]

PYTHON = (3, 11)
SECONDS = 60
"""How long a tool may take to say its version."""

_SYSTEM = {"make": "GNU make", "perl": "perl", "c++": "g++"}
_EXTRAS = {"": "", "synth": "synth and board", "dev": "make test", "train": "training",
           "peers": "tilewright bench --peers"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A tool: its version or fault, whether it works, who needs it, and how to get it."""

    tool: str
    version: str
    works: bool
    needed_for: str
    remedy: str

    @property
    def required(self) -> bool:
        """Whether nothing runs without it."""
        return not self.needed_for


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright doctor")(doctor)


def doctor() -> None:
    """Check that every tool is found and runs, and tell how to get a missing one."""
    from tilewright.cli.tables.text import console
    from tilewright.tools.progress import Steps

    with Steps().step("Checking the version of every tool"):
        findings = examine()
    console().print(doctor_table(findings))
    if not all(finding.works for finding in findings if finding.required):
        raise typer.Exit(FAILED)


def doctor_table(findings: Iterable[Finding]) -> "Table":
    """Return the table of ``tilewright doctor``."""
    from tilewright.tools.fitted_table import FittedTable

    table = FittedTable()
    for head in ("tool", "version", "state", "how to get it"):
        table.column(head, goes=1 if head == "version" else 0, least=16)
    for finding in findings:
        missing = "MISSING" if finding.required else f"missing; only for {finding.needed_for}"
        table.add_row(finding.tool, finding.version, "found" if finding.works else missing,
                      "" if finding.works else finding.remedy)
    return table


def examine() -> list[Finding]:
    """Look for Python, the system's tools, the packages, the programs in them and ONNX Runtime's kernels, in order."""
    return [_python(), *map(_system_tool, _SYSTEM), *_packages(), *_programs(), _kernels()]


def _python() -> Finding:
    wanted = ".".join(map(str, PYTHON))
    return Finding("Python", platform.python_version(), sys.version_info >= PYTHON, "",
                   f"install Python {wanted} or newer")


def _system_tool(name: str) -> Finding:
    return _run(name, [name, "--version"], f"install {_SYSTEM[name]} with the system's package manager")


def _packages() -> list[Finding]:
    try:
        requirements = metadata.requires("tilewright") or []
    except metadata.PackageNotFoundError:
        return [Finding("tilewright", "not installed", False, "", "make setup, or pip install -e .")]
    return [finding for finding in map(_package, requirements) if finding is not None]


def _package(requirement: str) -> Finding | None:
    wanted = Requirement(requirement)
    needed = (extra for extra in _EXTRAS if wanted.marker is None or wanted.marker.evaluate({"extra": extra}))
    if (extra := next(needed, None)) is None:
        return None     # of an extra that is not examined, or of other platforms
    try:
        version, works = metadata.version(wanted.name), True
    except metadata.PackageNotFoundError:
        version, works = "not installed", False
    return Finding(wanted.name, version, works, _EXTRAS[extra], f"pip install '{wanted.name}{wanted.specifier}'")


def _programs() -> list[Finding]:
    found = [_run("zig's clang", [sys.executable, "-m", "ziglang", "cc", "--version"], _reinstall("ziglang"))]
    try:
        found.append(_run("Yosys", [*yosys_command(), "--version"], _reinstall("pyosys")))
    except ToolMissingError as error:
        found.append(Finding("Yosys", "not found", False, "", str(error)))
    try:
        found.append(_run("Verilator", ["verilator", "--version"], _reinstall("verilator"), verilator_environment()))
    except ToolMissingError as error:
        found.append(Finding("Verilator", "not found", False, "", str(error)))
    return found


def _kernels() -> Finding:
    """Say how ONNX Runtime multiplies integers on this processor."""
    tool, purpose = "ONNX Runtime's kernels", "comparing uint8 models"
    try:
        from tilewright.runtime.oracle.exact_products import kernels_here

        kernels = kernels_here()
    except Exception as error:  # noqa: BLE001
        return Finding(tool, f"do not run: {type(error).__name__}", False, purpose, _reinstall("onnxruntime"))
    return Finding(tool, str(kernels), not kernels.saturate or kernels.has_exact_route, purpose,
                   "use a processor with VNNI, or ARM")


def _reinstall(package: str) -> str:
    return f"pip install --force-reinstall {package}"


def _run(tool: str, command: Sequence[str], remedy: str, environment: Mapping[str, str] | None = None) -> Finding:
    """Ask a program for its version."""
    path = shutil.which(command[0], path=environment["PATH"] if environment else None)
    if path is None:
        return Finding(tool, "not found", False, "", remedy)
    try:
        done = subprocess.run([path, *command[1:]], capture_output=True, text=True, timeout=SECONDS, check=False,
                              env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding(tool, f"does not run: {type(error).__name__}", False, "", remedy)
    if done.returncode != 0:
        return Finding(tool, f"does not run: status {done.returncode}", False, "", remedy)
    lines = [line.strip() for line in done.stdout.splitlines() if line.strip()]
    number = re.search(r"\d+(\.\d+)+", " ".join(lines[:2]))
    return Finding(tool, number[0] if number else "runs", True, "", remedy)
