"""The command ``check``; see `runtime.check.model_check`."""

from typing import Annotated

import typer

from tilewright.cli.arguments import (
    Calibrate,
    JsonFile,
    KeepFloat,
    MachineName,
    Model,
    machine_named,
    model_named,
    write_json,
)
from tilewright.cli.refusals import BAD_INPUT
from tilewright.errors import InputError
from tilewright.tools.output_files import require_place

MEBIBYTE = 1 << 20


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright check detector.onnx --machine nano --memory 8 --json check.json")(check)


def check(model: Model, machine: MachineName = "base",
          memory: Annotated[float | None, typer.Option("--memory", metavar="MIB", show_default=False,
                                                       help="Main memory there is, in MiB; without it 2 GiB.")] = None,
          json_file: JsonFile = None, calibrate: Calibrate = None, keep_float: KeepFloat = False) -> None:
    """Tell, before anything is built, where each node of MODEL would run and why, its cost, its memory, and its risks.

    Everything that is not compiled is listed with its reason and a way out; the exit status is then 2.
    """
    size = machine_named(machine)
    if memory is not None and not 0 < memory < float("inf"):
        raise InputError(f"Memory must be a number of MiB above 0, not {memory!r}")
    require_place(json_file)
    file = model_named(model, calibrate, keep_float)
    from tilewright.runtime.check.model_check import check_model, print_check
    from tilewright.runtime.execution.report_tables import console
    from tilewright.tools.progress import Steps

    with Steps().step(f"Checking {model}"):
        found = check_model(file, size, None if memory is None else int(memory * MEBIBYTE))
    print_check(found, console())
    if json_file is not None:
        write_json(json_file, found.to_json())
    if not found.compiles:
        raise typer.Exit(BAD_INPUT)
