"""Groups of options become options of the command line one by one, in order, and nothing heavy is imported for them."""

import inspect
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from tilewright.cli.options import arguments
from tilewright.energy.pricing import TECHNOLOGY
from tilewright.energy.technology_text import DRAM

ROOT = Path(__file__).parents[2]
HEAVY = ("amaranth", "numpy", "onnx", "onnxruntime", "torch")


@dataclass(frozen=True, kw_only=True)
class Colours:
    """A group for these tests."""

    red: Annotated[int, typer.Option("--red", help="How red.")] = 1
    blue: Annotated[str | None, typer.Option("--blue")] = None


def grouped(*words):
    found = []
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @arguments.with_groups
    def paint(what: str, colours: Colours, often: int = 2, *, again: bool = False) -> None:
        """Paint it."""
        found.append((what, colours, often, again))

    done = CliRunner().invoke(app, list(words))
    return done, found


def test_the_fields_of_a_group_are_options_and_arrive_as_the_group():
    done, found = grouped("wall", "--red", "7", "--often", "3", "--again")
    assert done.exit_code == 0, done.output
    assert found == [("wall", Colours(red=7), 3, True)]


def test_defaults_of_a_group_hold_where_nothing_is_given():
    assert grouped("wall")[1] == [("wall", Colours(), 2, False)]


def test_help_lists_the_fields_in_order():
    text = grouped("--help")[0].output
    assert "Paint it." in text
    assert "How red." in text
    assert text.index("--red") < text.index("--blue") < text.index("--often")


def test_a_command_shows_typer_its_flat_signature():
    def command(one: int, colours: Colours) -> None: ...

    assert list(inspect.signature(arguments.with_groups(command)).parameters) == ["one", "red", "blue"]


def test_the_defaults_of_energy_are_those_of_the_prices():
    assert (arguments.TECHNOLOGY, arguments.DRAM) == (TECHNOLOGY, DRAM)


@pytest.mark.parametrize("words", [
    ["--help"], ["run", "--help"], ["bench", "--help"], ["isa"], ["isa", "--format", "header"],
    ["run", "no-such.onnx", "--machine", "huge"], ["run", "lenet5", "--colour"], ["compile", "lenet5"]])
def test_nothing_heavy_is_imported_before_there_is_work(words):
    code = ("import sys; from tilewright.cli.app import app\n"
            "try:\n    app(sys.argv[1:], prog_name='tilewright')\n"
            "finally:\n    print(*sys.modules, file=sys.stderr)")
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, cwd=ROOT)
    loaded = set(done.stderr.splitlines()[-1].split())
    assert "tilewright.cli.app" in loaded, done.stderr
    assert sorted(loaded & set(HEAVY)) == []
    assert len([name for name in loaded if name.startswith("tilewright.")]) <= 80
