"""One run of a synthesis tool in a separate folder in the cache; a finished step never runs again.

A step's key is everything it depends on: tool and version, arguments, and the contents of its files. So a run that was
interrupted goes on with the step that was under way, and the same question is answered at once.
"""

import fcntl
import hashlib
import os
import re
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tilewright.errors import ToolError
from tilewright.tools.toolchain import cache_folder

__all__ = [
    "LOG", "SECONDS", "FinishedStep", "HopelessError", "Show", "SynthesisError", "Tool", "ToolStep", "finish",
    "finished", "tool",
]

_Detail = Callable[[str], None]
"""Takes what the step that is under way is doing."""

Show = Callable[[str], AbstractContextManager[_Detail]]
"""Opens a step by its title, for whoever watches; `tilewright.tools.progress.Steps.step` is one."""

LOG = "log"
SECONDS = "seconds"
_POLL_SECONDS = 0.2
_TAIL_BYTES = 4096

# Yosys: "2.26.6. Executing OPT_CLEAN pass (…)."; nextpnr: "Info: Routing..".
_DOING = re.compile(r"^(?:[\d.]+ Executing ([A-Z0-9_]+) pass|Info: ((?:Pack|Plac|Runn|Rout|Promot)ing[^.:,\n]*))",
                    re.MULTILINE)
_ERROR = re.compile(r"^.*ERROR: (.*)$", re.MULTILINE)


class SynthesisError(ToolError):
    """A tool did not finish; the message names the log."""


class HopelessError(SynthesisError):
    """A tool was stopped because its log shows that it would not finish."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program: its name for people, what starts it, and its version."""

    name: str
    command: tuple[str, ...]
    version: str

    @property
    def short(self) -> str:
        """Return name and number, without commit and compiler."""
        found = re.search(r"\d+(\.\d+)+", self.version)
        return f"{self.name} {found[0]}" if found else self.version


@dataclass(frozen=True, slots=True)
class ToolStep:
    """A run of a tool.

    Attributes
    ----------
    title : str
        Description of the step, for the waiting user.
    tool : Tool
    arguments : tuple of str
        Files are named relative to the step's folder, since tools in WebAssembly do not see all of the file system.
    inputs : mapping of str to str or Path
        Files that the tool reads, by name: their text, or where they lie.
    outputs : tuple of str
        Files that it must write; they are kept, and the log is.
    hopeless : callable, optional
        Takes the log so far; returns why the tool will not finish, or nothing.
    """

    title: str
    tool: Tool
    arguments: tuple[str, ...]
    inputs: Mapping[str, str | Path]
    outputs: tuple[str, ...]
    hopeless: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A step's folder with its outputs, and the processor time it took, now or then."""

    title: str
    tool: Tool
    folder: Path
    seconds: float
    kept: bool
    """It was in the cache."""


def finish(step: ToolStep, show: Show) -> FinishedStep:
    """Return the finished step, from the cache or from a run now.

    Raises
    ------
    SynthesisError
        If the tool fails or leaves an output unwritten.
    HopelessError
        If it was stopped by ``step.hopeless``.
    """
    folder = _folder(step)
    kept = True
    if not (folder / SECONDS).exists():
        with _alone(folder):
            if not (folder / SECONDS).exists():  # another process may have been at it
                _run(step, folder, show)
                kept = False
    return FinishedStep(step.title, step.tool, folder, float((folder / SECONDS).read_text()), kept)


def finished(step: ToolStep) -> bool:
    """Return whether the step is in the cache."""
    return (_folder(step) / SECONDS).exists()


@cache
def tool(name: str, command: tuple[str, ...], flag: str) -> Tool:
    """Return a program and the version that it prints with ``flag``.

    Raises
    ------
    SynthesisError
        If it does not start.
    """
    done = subprocess.run([*command, flag], capture_output=True, text=True, check=False)
    said = (done.stdout.strip() or done.stderr.strip()).splitlines()
    if done.returncode != 0 or not said:
        raise SynthesisError(f"Tool {name} ({command[-1]}) must tell its version with {flag}, but ended with status "
                             f"{done.returncode}")
    return Tool(name, command, said[0])


def _run(step: ToolStep, folder: Path, show: Show) -> None:
    draft = folder.with_name(f"{folder.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)  # left by a run that failed or was stopped
    draft.mkdir(parents=True)
    for name, content in step.inputs.items():
        if isinstance(content, Path):
            _place(content, draft / name)
        else:
            (draft / name).write_text(content)
    start = _processor_seconds()
    with show(step.title) as detail:
        status = _watch(step, draft, detail)
    missing = [name for name in step.outputs if not (draft / name).exists()]
    if status != 0 or missing:
        raise SynthesisError(f"{step.tool.name} could not finish {step.title!r}: "
                             f"{_reason(draft / LOG, missing, status)}; "
                             f"the log is {draft / LOG}")
    for name in step.inputs:
        if name not in step.outputs:
            (draft / name).unlink(missing_ok=True)
    (draft / SECONDS).write_text(f"{_processor_seconds() - start:.1f}\n")
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


def _processor_seconds() -> float:
    """Return the processor time of all programs that this process has started and seen the end of."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _watch(step: ToolStep, folder: Path, detail: _Detail) -> int:
    """Run a tool, telling what its log says it is doing; whatever ends this process's wait ends the tool too."""
    with (folder / LOG).open("wb") as log:
        running = subprocess.Popen([*step.tool.command, *step.arguments], cwd=folder, stdout=log,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            told, size = "", 0
            while True:
                try:
                    return running.wait(_POLL_SECONDS)
                except subprocess.TimeoutExpired:
                    if (now := _doing(folder / LOG)) and now != told:
                        detail(told := now)
                    # Logs of Yosys are large: only those that somebody asks about are read as a whole.
                    if step.hopeless is not None and size != (size := (folder / LOG).stat().st_size):
                        _require_hope(step, step.hopeless((folder / LOG).read_text(errors="replace")))
        finally:
            if running.poll() is None:
                running.terminate()
                running.wait()


def _require_hope(step: ToolStep, reason: str) -> None:
    if reason:
        raise HopelessError(f"{step.tool.name} was stopped at {step.title!r}: {reason}")


def _doing(log: Path) -> str:
    """Return the last pass that a log mentions, or nothing."""
    with log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
        found = _DOING.findall(file.read().decode(errors="replace"))
    return (found[-1][0].lower() or found[-1][1]).strip() if found else ""


def _reason(log: Path, missing: list[str], status: int) -> str:
    text = log.read_text(errors="replace")
    if errors := _ERROR.findall(text):
        return errors[-1].strip().rstrip(".")
    if status < 0:  # as subprocess has it
        return f"it was ended by signal {-status} ({signal.strsignal(-status)}), by someone or for want of memory"
    if missing:
        return f"it did not write {' and '.join(missing)}"
    return (text.strip().splitlines() or ["it said nothing"])[-1]


def _folder(step: ToolStep) -> Path:
    home = cache_folder() / "synthesis"
    home.mkdir(exist_ok=True)
    return home / _key(step)


def _key(step: ToolStep) -> str:
    digest = hashlib.sha256("\n".join((step.tool.name, step.tool.version, *step.arguments)).encode())
    for name, content in sorted(step.inputs.items()):
        digest.update(f"\n{name}\n".encode())
        digest.update(content.read_bytes() if isinstance(content, Path) else content.encode())
    return digest.hexdigest()


def _place(source: Path, target: Path) -> None:
    """Make ``target`` the file ``source``, which may be large, without a copy if the file system can."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one process at a time work on a folder."""
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
