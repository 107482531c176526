"""The command ``tilewright extension``: test and describe your own instruction."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["hold", "manual", "register"]

FileArgument = Annotated[Path, typer.Argument(metavar="FILE.py", show_default=False,
                                              help="The extension; it is executed (docs/extensions.md).")]


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    group = typer.Typer(help="Test or describe your own instruction.", no_args_is_help=True)
    group.command(name="test", epilog="Example: tilewright extension test examples/extensions/prelu.py")(hold)
    group.command(epilog="Example: tilewright extension manual examples/extensions/prelu.py")(manual)
    app.add_typer(group, name="extension")


def hold(file: FileArgument,
         seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the random vectors.")] = 0,
         vectors: Annotated[int, typer.Option("--vectors", min=1, help="Number of vectors for each random choice of a "
                                                                       "stage's fields.")]
         = 500) -> None:
    """Simulate the component of FILE.py, compare it with its NumPy function, and show the first difference.

    Vectors arrive back to back and after gaps. Back-pressure stalls the results of a unit at random.
    """
    from tilewright.isa.extension import BufferUnit, PostStage, load_extension
    from tilewright.sim.extension_test import check_stage
    from tilewright.sim.unit_check import check_unit

    extension = load_extension(file)
    if isinstance(extension, PostStage):
        found = check_stage(extension, seed=seed, vectors=vectors)
        typer.echo(f"{extension.mnemonic}: {found.vectors} vectors, {found.values} values, equal in RTL and NumPy at "
                   f"{', '.join(map(str, found.lanes))} values per cycle")
    elif isinstance(extension, BufferUnit):
        held = check_unit(extension, seed=seed)
        typer.echo(f"{extension.mnemonic}: {held.items} items of {held.bytes} bytes in all, equal in RTL and NumPy, "
                   "with and without gaps and back-pressure")


def manual(file: FileArgument) -> None:
    """Show the instruction of FILE.py: its fields, its effect, and its C macro."""
    from tilewright.isa.emit_c import header
    from tilewright.isa.extension import BufferUnit, PostStage, load_extension

    extension = load_extension(file)
    (variant,) = extension.instruction.variants
    size = ""
    if isinstance(extension, PostStage):
        size = f"one vector per cycle, up to {extension.channels} channels of {extension.parameter_bytes} bytes"
    elif isinstance(extension, BufferUnit):
        size = f"16 bytes per cycle, for each item {extension.result_bytes} bytes"
    typer.echo(f"{extension.mnemonic}.{variant.name}: {extension.effect}. funct3 {extension.instruction.funct3}, "
               f"unit {variant.unit}, latency {extension.latency}, {size}; for {', '.join(extension.operators)}")
    for register, fields in (("rs1", variant.rs1), ("rs2", variant.rs2)):
        for field in fields:
            typer.echo(f"  {register}  {field.name}, {field.width} bits: {field.effect}")
    text = header(extension)
    typer.echo(text[text.index(f"/* ---- {extension.mnemonic}:"):])
