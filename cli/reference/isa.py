"""The command ``isa``: the instruction table of isa/encoding.py for a person, a program, or a C compiler."""

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.isa.encoding import CUSTOM_0, INSTRUCTIONS, Field, Variant

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["TableFormat", "instruction_table", "instructions_json", "isa", "register"]


class TableFormat(StrEnum):
    """Forms in which ``isa`` shows the instructions."""

    table = "table"
    json = "json"
    header = "header"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright isa --format header > tilewright.h")(isa)


def isa(form: Annotated[TableFormat, typer.Option("--format", help="Output for a person, a program, or a C compiler.")]
        = TableFormat.table) -> None:
    """Show the seven instructions."""
    if form is TableFormat.header:
        from tilewright.isa.emit_c import header

        typer.echo(header(), nl=False)
    elif form is TableFormat.json:
        typer.echo(json.dumps(instructions_json(), indent=2))
    else:
        from tilewright.cli.tables.text import console

        console().print(instruction_table())


def instruction_table() -> "Table":
    """Return the seven instructions with their variants, one row each."""
    from tilewright.tools.fitted_table import FittedTable

    table = FittedTable(title=f"custom-0 (opcode {CUSTOM_0:#04x}), R-type, rd = x0")
    for head in ("instruction", "funct3", "variant", "unit", "effect"):
        table.column(head, goes={"unit": 1, "funct3": 2}.get(head, 0), least=24 if head == "effect" else 11)
    for instruction in INSTRUCTIONS:
        table.add_section()
        table.add_row(f"[bold]{instruction.mnemonic}", str(instruction.funct3), "", "",
                      f"[bold]{instruction.effect}")
        for variant in instruction.variants:
            table.add_row("", "", f"{variant.code} {variant.name}", variant.unit, variant.effect)
    return table


def instructions_json() -> dict[str, Any]:
    """Return the table as dicts and lists: fields with their lowest bit and width, flags by bit of funct7."""
    return {
        "opcode": CUSTOM_0,
        "instructions": [
            {"mnemonic": instruction.mnemonic, "funct3": instruction.funct3, "effect": instruction.effect,
             "variants": [_variant(variant) for variant in instruction.variants]}
            for instruction in INSTRUCTIONS],
    }


def _variant(variant: Variant) -> dict[str, Any]:
    flags = [flag.name if flag is not None else None for flag in variant.flags]
    return {"name": variant.name, "code": variant.code, "unit": variant.unit, "effect": variant.effect,
            "rs1": _operand(variant.rs1), "rs2": _operand(variant.rs2), "flags": flags}


def _operand(fields: tuple[Field, ...]) -> list[dict[str, Any]]:
    placed, low = [], 0
    for field in fields:
        placed.append({"name": field.name, "low": low, "width": field.width, "signed": field.signed,
                       "effect": field.effect})
        low += field.width
    return placed
