"""The command ``synth``; see `hardware.synthesis`."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.options.arguments import JsonFile, MachineOptions, with_groups, write_json
from tilewright.cli.options.refusals import FAILED
from tilewright.errors import InputError
from tilewright.tools.files import require_place

__all__ = ["DEFAULT_MHZ", "TARGET_NAMES", "PlaceOptions", "register", "synth"]

DEFAULT_MHZ = 80.0
"""Clock that place and route aims at, if the design states no clock."""

TARGET_NAMES = "ecp5-25k|ecp5-85k|nexus-40|ice40up5k|gw2a-18|gw5a-25|xc7|cyclonev|gatemate-a1|osu018|sky130"

CELL_TARGETS = ("osu018", "sky130")
"""Those of them that are standard cells."""


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright synth --target ecp5-25k --machine nano --with-core --json area.json")(synth)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOptions:
    """Memories, and place and route: from what, whether, and what it draws."""

    seed: Annotated[int, typer.Option("--seed", min=1, help="Seed of place and route.")] = 1
    floorplan: Annotated[Path | None, typer.Option(
        "--floorplan", metavar="FILE.svg", show_default=False,
        help="Also draw the placed blocks; on an ECP5 this places and routes again.")] = None
    place: Annotated[bool | None, typer.Option(
        "--place/--no-place", show_default="place on FPGAs; standard cells timed without wires",
        help="--place: also place standard cells, for wires and the frequency with them (extra layout). "
             "--no-place: report only area, without timing.")] = None
    collision_logic: Annotated[bool, typer.Option(
        "--collision-logic", help="ECP5: keep the logic for words that are read while they are written, as the area "
                                  "model has it.")] = False

    def check(self, target: str) -> None:
        """Raise InputError if a picture is wanted of what is not placed, or cannot be written."""
        require_place(self.floorplan)
        placed = self.place is not False if target.startswith("ecp5") else self.lays_out(target)
        if self.floorplan is not None and not placed:
            raise InputError("Option --floorplan needs a placement: target ecp5-25k or ecp5-85k, without --no-place, "
                             "or osu018 or sky130, with --place")

    def lays_out(self, target: str) -> bool:
        """Return whether standard cells are to be placed."""
        return self.place is True and target in CELL_TARGETS


@with_groups
def synth(target: Annotated[str, typer.Option("--target", metavar=TARGET_NAMES, show_default=False,
                                              help="FPGA or library of standard cells.")],
          with_core: Annotated[bool, typer.Option("--with-core", help="Include the host core, CV32E40X.")] = False,
          clock: Annotated[str | None, typer.Option(
              "--clock", metavar="FREQUENCY", show_default="the design's, or 80MHz",
              help="Target frequency of place and route, such as 80MHz.")] = None,
          json_file: JsonFile = None,
          output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", show_default=False,
                                                      help="Also copy scripts, netlists "
                                                           "and logs to this folder.")] = None,
          *, placing: PlaceOptions, chosen: MachineOptions) -> None:
    """Synthesise a machine with open tools: area by block and, after place and route, frequency and slowest path.

    Finished steps are kept: an interrupted run continues where it was. The exit status is 1 if the design does not fit.
    """
    stated, machine = chosen.design(clock=clock), chosen.machine
    size = stated.machine
    aim = stated.pricing.clock_mhz or DEFAULT_MHZ
    require_place(json_file)
    placing.check(target)
    from tilewright.cli.tables.text import console
    from tilewright.hardware.synthesis.floorplan import floorplan
    from tilewright.hardware.synthesis.flow import require_tools, synthesise
    from tilewright.hardware.synthesis.sources import machine_design
    from tilewright.hardware.synthesis.synthesis_report import SynthesisRequest
    from tilewright.hardware.synthesis.synthesis_tables import print_synthesis
    from tilewright.tools.progress import Steps

    try:
        require_tools(target, place=placing.place is not False, layout=placing.lays_out(target))
    except ValueError as error:
        raise InputError(str(error)) from error
    steps = Steps()
    with steps.step(f"Elaborating {machine}"):
        design = machine_design(size, with_core=with_core)
    request = SynthesisRequest(design, machine, with_core=with_core, seed=placing.seed, freq=aim,
                               place=placing.place is not False, floorplan=placing.floorplan is not None,
                               any_collision=not placing.collision_logic,
                               layout=placing.lays_out(target))
    report = synthesise(request, target, steps.step)
    print_synthesis(report, console())
    if json_file is not None:
        write_json(json_file, report.to_json())
    if placing.floorplan is not None and report.cells:
        drawn = floorplan(report.cells, f"{report.design} on {report.target_title}")
        placing.floorplan.write_text(drawn, encoding="utf-8")
        print(placing.floorplan)
    if output is not None:
        for step, folder in zip(report.steps, report.folders, strict=True):
            shutil.copytree(folder, output / step.title.replace(" ", "_"), dirs_exist_ok=True)
    if not report.fits:
        raise typer.Exit(FAILED)
