"""The command ``verilog``; see `hardware.package.package`."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.options.arguments import MachineOptions, WindowsChoice, with_groups
from tilewright.isa.command_port import HardwarePort

__all__ = ["MemoryBus", "register", "verilog"]


class MemoryBus(StrEnum):
    """The memory bus of the package's top module."""

    axi4 = "axi4"
    axi4_own_clock = "axi4-own-clock"
    wishbone = "wishbone"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright verilog --machine nano --bus wishbone -o out/verilog")(verilog)


@with_groups
def verilog(output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", show_default=False,
                                                 help="Folder to write.")],
            bus: Annotated[MemoryBus, typer.Option(
                "--bus", help="Bus to memory; axi4-own-clock has a clock that is not the coprocessor's.")]
            = MemoryBus.axi4,
            port: Annotated[HardwarePort, typer.Option(
                "--port", help="How the host sends commands: CV-X-IF as of CV32E40X 0.6, "
                                                         "version 1.0 of it, or registers on AXI4-Lite.")] = "cvxif",
            windows: WindowsChoice = None,
            with_core: Annotated[bool, typer.Option(
                "--with-core", help="Also include the host core, CV32E40X, and a system of core and coprocessor; needs "
                                    "axi4 and cvxif.")]
            = False,
            *, chosen: MachineOptions) -> None:
    """Write the coprocessor as vendor-neutral Verilog: sources, testbench, constraints, and a README to start from."""
    size = chosen.design().machine
    from tilewright.hardware.package.package import write_verilog
    from tilewright.tools.progress import Steps

    with Steps().step(f"Writing the coprocessor of {chosen.machine} as Verilog") as show:
        files = write_verilog(size, output, bus=bus.value, port=port, windows=windows, with_core=with_core,
                              show=show)
    for path in files:
        typer.echo(path)
