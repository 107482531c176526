"""A board's bitstream in a folder, with a report and the lines that are shown."""

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tilewright.hardware.board.bitstream import BoardReport, build_bitstream
from tilewright.hardware.board.deployment import Deployment
from tilewright.tools.files import write_file
from tilewright.tools.fitted_table import FittedTable
from tilewright.tools.progress import Steps

__all__ = ["board_table", "build_board", "print_build"]

_SHOWN = {"TRELLIS_COMB": "logic cells", "TRELLIS_FF": "flip-flops", "DP16KD": "block RAMs of 18 kbit",
          "MULT18X18D": "multipliers 18x18"}
"""Kinds of places in the device that a person asks for."""


def build_board(deployment: Deployment, folder: Path, steps: Steps, *,
                seed: int = 1) -> tuple[list[Path], BoardReport]:
    """Write a bitstream with the board's name and ``report.json`` to ``folder`` and return their paths, and the report.

    Raises
    ------
    ToolError
        If a tool fails, the design does not fit, or is too slow for the board's clock.
    InputError
        If the folder cannot be written to.
    """
    design, program = deployment.design, deployment.program
    bitstream, report = build_bitstream(design, program.ram, program.main, steps.step, seed=seed)
    files = [folder / f"{design.board.name}.bit", folder / "report.json"]
    write_file(files[0], bitstream.read_bytes())
    write_file(files[1], (json.dumps(asdict(report), indent=2) + "\n").encode())
    return files, report


def print_build(report: BoardReport, out: Console) -> None:
    """Print what the device is used for, the frequency, and what limits it."""
    out.print(board_table(report))
    path, seconds = report.path, ", ".join(f"{step} {each:,.0f} s" for step, each in report.seconds.items())
    for line in (f"{report.fmax_mhz:.1f} MHz after place and route; the board's clock has {report.clock_mhz:g} MHz",
                 f"slowest path, {path.start_block} to {path.end_block}: {path.start} to {path.end}",
                 f"{path.logic_ns:.1f} ns logic and {path.wire_ns:.1f} ns wires, {path.cells} cells",
                 seconds, *report.versions):
        out.print(line, highlight=False, markup=False, soft_wrap=True)


def board_table(report: BoardReport) -> Table:
    """Return the table of what a design takes of the device."""
    table = FittedTable(title=f"machine {report.machine} with CV32E40X on {report.device}")
    for head in ("", "used", "available", "%"):
        table.column(head, number=bool(head))
    for kind, name in _SHOWN.items():
        used, available = report.used.get(kind, 0), report.available[kind]
        table.add_row(f"{name} ({kind})", f"{used:,}", f"{available:,}", f"{100 * used / available:.0f}")
    return table
