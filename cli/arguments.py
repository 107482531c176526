"""Options and arguments that several commands have, and what their values stand for."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tilewright.energy.imported_power import ImportedPower, read_power
from tilewright.energy.pricing import Pricing
from tilewright.errors import InputError
from tilewright.isa.machine import PRESETS, Machine, preset
from tilewright.models import NAMES
from tilewright.tools.output_files import write_file


class Engine(StrEnum):
    """What executes the program."""

    rtl = "rtl"
    fast = "fast"


Model = Annotated[str, typer.Argument(metavar="MODEL", show_default=False,
                                      help=f"An .onnx file, or one of {', '.join(NAMES)}.")]
MachineName = Annotated[str, typer.Option("--machine", metavar="|".join(PRESETS), help="Size of the coprocessor.")]
EngineName = Annotated[Engine, typer.Option("--engine", help="The hardware in Verilator, or its model: same bits.")]
InputFile = Annotated[Path | None, typer.Option("--input", metavar="FILE", show_default=False,
                                                help=".npz with arrays by input name, or .npy for a single input.")]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", show_default=False,
                                               help="Also write the report as JSON.")]
Calibrate = Annotated[Path | None, typer.Option(
    "--calibrate", metavar="FILE", show_default=False,
    help="Quantise a float model with these samples: .npz with an array per input, its first axis counting samples, "
         "or .npy for a single input. Without it the ranges are from noise: a quick look.")]
TechnologyName = Annotated[str, typer.Option("--technology", metavar="NAME",
                                             help="Whose prices the energy has: a file of energy/technology.")]
DramPart = Annotated[str, typer.Option("--dram", metavar="PART", help="What main memory is, for its energy.")]
Gated = Annotated[bool, typer.Option("--gated", help="Energy with clock gates on the registers' enables.")]
Activity = Annotated[bool, typer.Option("--activity", help="Count register toggles in RTL instead of predicting them.")]
ImportPower = Annotated[Path | None, typer.Option(
    "--import-power", metavar="FILE", show_default=False,
    help="Also say the energy on an FPGA, from Vivado's report_power or JSON (energy/imported_power.py).")]
KeepFloat = Annotated[bool, typer.Option("--float", help="Do not quantise a float model: compute it on the core.")]


def model_named(name: str, calibrate: Path | None = None, keep_float: bool = False) -> Path:
    """Return the file of a model: built-in, built now if need be, or the file of this name; a float one quantised."""
    from tilewright.runtime.model_files import model_file, ready_model
    from tilewright.tools.progress import Steps

    steps = Steps()
    return ready_model(model_file(name, steps), calibrate, keep_float, steps)


def say_ranges(model: Path) -> None:
    """Say on standard error what the ranges of a model are from, if it was quantised here: where no report does."""
    from tilewright.runtime.quantise.quantised_model import calibration_note, quantised_here

    if quantised_here(model) is not None:
        typer.echo(calibration_note(model), err=True)


def machine_named(name: str) -> Machine:
    """Return the machine that is the preset ``name``."""
    try:
        return preset(name)
    except ValueError as error:
        raise InputError(str(error)) from error


def priced(technology: str, dram: str, *, gated: bool) -> Pricing:
    """Return whose prices a run's energy has, once it is known that there are such."""
    pricing = Pricing(technology=technology, dram=dram, gated=gated)
    pricing.clock(pricing.load())
    return pricing


def imported(path: Path | None) -> ImportedPower | None:
    """Return what a power report says, if there is one."""
    return None if path is None else read_power(path)


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write what a command has found as JSON."""
    write_file(path, (json.dumps(data, indent=2) + "\n").encode())
