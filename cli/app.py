"""The command ``tilewright``: results on standard output, progress and errors on standard error.

Exit status: 0 if the run ended and every value compared equals ONNX Runtime's, 1 if not, 2 for bad input.
What a command needs is imported when it runs, so that ``--help`` and ``isa`` answer at once.
"""

import io
import signal
import sys
from typing import Annotated

import typer

from tilewright._version import __version__
from tilewright.cli import (
    benchmarks,
    board,
    cache,
    calibrate,
    card,
    check,
    compare,
    compile_model,
    demo,
    doctor,
    evaluate_accuracy,
    quantise,
    run_model,
    synth,
    verilog,
)
from tilewright.cli.design import ablate, diff, explore, own_instruction, show_machine
from tilewright.cli.options.refusals import QUIET, OneSentence
from tilewright.cli.options.streams import be_quiet
from tilewright.cli.reference import isa

__all__ = ["app", "end_in_order_when_terminated", "main", "print_in_any_locale"]

app = typer.Typer(cls=OneSentence, add_completion=True, pretty_exceptions_enable=False, rich_markup_mode=None,
                  help="Compile an ONNX model to a RISC-V program with seven custom instructions, and simulate it bit "
                       "for bit.")

def _print_version(wanted: bool) -> None:
    """Print the version, if asked for it, and exit."""
    if wanted:
        typer.echo(f"tilewright {__version__}")
        raise typer.Exit


# In the order in which --help lists them.
for _register in (run_model.register_run, compile_model.register, run_model.register_simulate, check.register,
                  card.register, compare.register, evaluate_accuracy.register, quantise.register, synth.register,
                  verilog.register, board.register, calibrate.register, benchmarks.register_baseline, isa.register,
                  show_machine.register, diff.register, ablate.register, explore.register, own_instruction.register,
                  doctor.register, cache.register, benchmarks.register_bench, demo.register):
    _register(app)


@app.callback()
def _start(version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True,
                                                 callback=_print_version)] = False,
           quiet: Annotated[bool, typer.Option(*QUIET, callback=be_quiet,
                                               help="Print only errors; may stand "
                                                    "before or after the command.")] = False,
           ) -> None:
    """Do nothing: a command follows."""


def main() -> None:
    """Run the command line."""
    print_in_any_locale()
    end_in_order_when_terminated()
    app(prog_name="tilewright")


def print_in_any_locale() -> None:
    """Let a letter that the locale's encoding lacks be printed as ?, instead of ending the run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def end_in_order_when_terminated() -> None:
    """Let SIGTERM end this process as an exception does: tools that it started end with it, drafts are removed."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
