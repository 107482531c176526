"""The command ``check``; see `runtime.check.model_check`."""

from typing import Annotated

import typer

from tilewright.cli.options.arguments import (
    JsonFile,
    MachineName,
    Model,
    QuantiseOptions,
    machine_named,
    with_groups,
    write_json,
)
from tilewright.cli.options.refusals import BAD_INPUT
from tilewright.errors import InputError
from tilewright.tools.files import require_place

__all__ = ["MEBIBYTE", "check", "register"]

MEBIBYTE = 1 << 20


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright check detector.onnx --machine nano --memory 8 --json check.json")(check)


@with_groups
def check(model: Model, machine: MachineName = "base",
          memory: Annotated[float | None, typer.Option("--memory", metavar="MIB", show_default=False,
                                                       help="Size of main memory in MiB; without it 2 GiB.")] = None,
          json_file: JsonFile = None, *, quantise: QuantiseOptions) -> None:
    """Show, before anything is built, where each node of MODEL would run and why, its cost, memory and risks.

    Nodes that cannot be compiled are listed with the reason and a way out; the exit status is then 2.
    """
    size = machine_named(machine)
    if memory is not None and not 0 < memory < float("inf"):
        raise InputError(f"Option --memory must be a number of MiB above 0, not {memory!r}")
    require_place(json_file)
    source = quantise.model(model)
    from tilewright.cli.tables.check_tables import print_check
    from tilewright.cli.tables.text import console
    from tilewright.runtime.check.model_check import check_model
    from tilewright.tools.progress import Steps

    with Steps().step(f"Checking {model}"):
        found = check_model(source, size, None if memory is None else int(memory * MEBIBYTE))
    print_check(found, console())
    if json_file is not None:
        write_json(json_file, found.to_json())
    if not found.compiles:
        raise typer.Exit(BAD_INPUT)
