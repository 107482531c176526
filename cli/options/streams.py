"""Direct a command's output: only a report on standard output, or only errors."""

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from contextvars import ContextVar
from pathlib import Path
from typing import TextIO

import typer

__all__ = ["STANDARD_OUTPUT", "be_quiet", "leave_standard_output", "print_result"]

STANDARD_OUTPUT = Path("-")
"""A file that stands for standard output."""

_results: ContextVar[TextIO | None] = ContextVar("results", default=None)
"""Standard output as it was, where something keeps tables off it."""


def leave_standard_output(context: typer.Context, file: Path | None) -> Path | None:
    """Send everything but a report to standard error, if ``file`` is `STANDARD_OUTPUT`; return ``file``."""
    if file == STANDARD_OUTPUT:
        _keep_results(context)
        context.with_resource(redirect_stdout(sys.stderr))
    return file


def be_quiet(context: typer.Context, wanted: bool) -> None:
    """Print no tables and no progress, if ``wanted``; errors are printed when the command has ended."""
    if wanted:
        _keep_results(context)
        nowhere = context.with_resource(open(os.devnull, "w", encoding="utf-8"))
        context.with_resource(redirect_stdout(nowhere))
        context.with_resource(redirect_stderr(nowhere))


def print_result(text: str) -> None:
    """Print on standard output, whatever else is kept off it."""
    stream = _results.get() or sys.stdout
    stream.write(text)
    stream.flush()


def _keep_results(context: typer.Context) -> None:
    """Remember standard output until the command ends."""
    if _results.get() is None:
        token = _results.set(sys.stdout)
        context.call_on_close(lambda: _results.reset(token))
