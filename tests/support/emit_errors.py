"""Render docs/errors.md: what `tilewright run` says of each broken model, as it says it."""

import tempfile
from pathlib import Path

from typer.testing import CliRunner

from tests.support.broken_models import BROKEN, write_broken
from tilewright.cli.app import app
from tilewright.tools.templates import render

_TEMPLATE = Path(__file__).with_name("errors.md.j2")


def sentence(name: str, folder: Path) -> str:
    """Return what ``run`` says of the broken model ``name``, written to ``folder``, without the command's name.

    A command to paste at its end is left out: it names the folder.

    Raises
    ------
    AssertionError
        If it is not one sentence on standard error, with exit status 2.
    """
    done = CliRunner().invoke(app, ["run", str(write_broken(name, folder))], prog_name="tilewright",
                              catch_exceptions=False)
    said = done.stderr.removeprefix("tilewright: ")
    if (done.exit_code, done.stdout, said.count("\n")) != (2, "", 1) or said == done.stderr:
        raise AssertionError(f"run must refuse {name!r} in one sentence with status 2, and ended with "
                             f"{done.exit_code}: {done.output}")
    first, command, _ = said.rstrip("\n").partition("; the command is ")
    return first + "." * bool(command)


def page() -> str:
    """Return the page's text."""
    with tempfile.TemporaryDirectory() as folder:
        said = {what: sentence(name, Path(folder)) for name, (what, _) in BROKEN.items()}
    return render(_TEMPLATE, said=said)


if __name__ == "__main__":
    print(page(), end="")
