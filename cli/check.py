"""The command ``check``; see `runtime.check.model_check`."""

import re
from typing import Annotated

import typer

from tilewright.cli.options.arguments import (
    CompilerOptions,
    JsonFile,
    MachineOptions,
    Model,
    PredictionOptions,
    with_groups,
    write_json,
)
from tilewright.cli.options.model_state import StateOptions
from tilewright.cli.options.refusals import BAD_INPUT
from tilewright.errors import InputError
from tilewright.tools.files import require_place

__all__ = ["MEBIBYTE", "check", "register"]

MEBIBYTE = 1 << 20

_NUMBER = re.compile(r"[0-9.]+")


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright check detector.onnx --machine nano --capacity 8 --json check.json")(check)


@with_groups
def check(model: Model,
          capacity: Annotated[float | None, typer.Option("--capacity", metavar="MIB", show_default=False,
                                                         help="Size of main memory in "
                                                              "MiB; the default is 2 GiB.")] = None,
          json_file: JsonFile = None, *, chosen: MachineOptions, prediction: PredictionOptions,
          compiler: CompilerOptions, quantise: StateOptions) -> None:
    """Show where each node of MODEL would run and why, its cost, memory and risks, before anything is built.

    The cycles are those of run with the same options; memory is that of a compiled model. Nodes that cannot be compiled
    are listed with the reason and a way out; the exit status is then 2.
    """
    if prediction.memory is not None and _NUMBER.fullmatch(prediction.memory):
        raise InputError(f"Option --memory must be the timing of main memory, such as latency=60,bytes=8, not "
                         f"{prediction.memory!r}; its size in MiB is --capacity {prediction.memory}")
    design = chosen.design(memory=prediction.memory, clock=prediction.clock)
    if capacity is not None and not 0 < capacity < float("inf"):
        raise InputError(f"Option --capacity must be a number of MiB above 0, not {capacity!r}")
    require_place(json_file, read=(model, quantise.calibrate))
    from tilewright.cli.tables.check_tables import print_check
    from tilewright.cli.tables.text import console
    from tilewright.compiler.errors import UnsupportedNodeError
    from tilewright.runtime.check.model_check import check_model, refused
    from tilewright.tools.progress import Steps

    try:
        source = quantise.model(model)
    except UnsupportedNodeError as error:
        found = refused(model, design.machine, error)
    else:
        with Steps().step(f"Checking {model}"):
            found = check_model(source, design, None if capacity is None else int(capacity * MEBIBYTE),
                                options=compiler.options(bool(source.state)), outputs_only=prediction.outputs_only)
    print_check(found, console())
    milliseconds = found.cycles / (1e3 * design.mhz)
    if found.layers:
        batch = compiler.batch
        each = "" if batch == 1 else f" for {batch} images, {found.cycles / batch:,.0f} cycles per image"
        console().print(f"predicted time at {design.mhz:g} MHz: {milliseconds:,.3f} ms{each}", highlight=False)
    if json_file is not None:
        write_json(json_file, found.to_json() | {"milliseconds": milliseconds, "design": design.to_json()})
    if not found.compiles:
        raise typer.Exit(BAD_INPUT)
