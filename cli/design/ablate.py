"""The command ``ablate``; see `bench.ablation.ablation`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import (
    ClockText,
    JsonFile,
    MemoryText,
    TechnologyName,
    with_groups,
    write_json,
)
from tilewright.errors import InputError
from tilewright.isa.machine import DEFAULT_MACHINE
from tilewright.tools.files import require_place, write_file

if TYPE_CHECKING:
    from tilewright.bench.ablation.ablation import Areas, MeasureArea
    from tilewright.isa.machine import Machine
    from tilewright.tools.progress import Steps

__all__ = ["ablate", "register"]

_RESOURCES = ("LUT", "DSP", "BRAM", "area", "memory")
"""Of a synthesis, those that are compared: LUTs, multipliers and block RAMs, or µm² of cells and of macros."""


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright ablate lenet5 resnet18-32 --machine nano --json ablation.json")(ablate)


@with_groups
def ablate(models: Annotated[list[str], typer.Argument(metavar="MODEL…", show_default=False,
                                                       help="Networks: .onnx files or names of built-in models.")],
           machine: Annotated[list[str] | None, typer.Option(
               "--machine", metavar="DESIGN", show_default=DEFAULT_MACHINE,
               help="A design, as for `run`; may be repeated.")] = None,
           target: Annotated[list[str] | None, typer.Option(
               "--target", metavar="TARGET", show_default=False,
               help="Synthesise for this target of `tilewright synth` to measure area, instead of predicting it; may "
                    "be repeated. Takes minutes for each machine, once.")] = None,
           memory: MemoryText = None, clock: ClockText = None, technology: TechnologyName = None,
           json_file: JsonFile = None,
           output: Annotated[Path | None, typer.Option(
               "-o", "--output", metavar="FILE.md", show_default=False,
               help="Also write a page, with its picture as SVG beside it.")] = None) -> None:
    """Show what each instruction and unit earns: cycles, energy, bytes and area of a machine with and without it."""
    require_place(json_file, output)
    if output is not None and output.suffix != ".md":
        raise InputError(f"Option --output must name a page, which ends in .md, not {str(output)!r}")
    from tilewright.bench.ablation.ablation import ablate as run_ablation
    from tilewright.bench.ablation.ablation_page import page
    from tilewright.bench.ablation.ablation_picture import picture
    from tilewright.cli.tables.ablation_table import print_ablation
    from tilewright.cli.tables.text import console
    from tilewright.runtime.design.design_flags import design_of
    from tilewright.runtime.predicted_network import PredictedNetwork
    from tilewright.tools.progress import Steps

    steps = Steps()
    stated = machine or [DEFAULT_MACHINE]
    designs = [design_of(text, memory=memory, clock=clock, technology=technology) for text in stated]
    for design in designs:
        design.pricing.load()
    networks = [PredictedNetwork.named(name, steps=steps) for name in models]
    found = run_ablation(networks, designs, steps, _measure(target, steps) if target else None)
    print_ablation(found, console())
    if json_file is not None:
        write_json(json_file, found.to_json())
    if output is not None:
        drawn = output.with_suffix(".svg")
        words = [word for text in machine or () for word in ("--machine", text)]
        words += [word for text in target or () for word in ("--target", text)]
        for name, value in (("--memory", memory), ("--clock", clock), ("--technology", technology)):
            words += [] if value is None else [name, value]
        command = shlex.join(["tilewright", "ablate", *models, *words, "-o", str(output)])
        write_file(drawn, picture(found).encode())
        write_file(output, page(found, command, drawn.name).encode())


def _measure(targets: list[str], steps: "Steps") -> "MeasureArea":
    """Return what synthesises a machine for ``targets``, without placing it."""
    from tilewright.hardware.synthesis.flow import synthesise
    from tilewright.hardware.synthesis.sources import machine_design
    from tilewright.hardware.synthesis.synthesis_report import SynthesisRequest
    from tilewright.hardware.synthesis.targets import target_named

    try:
        for target in targets:
            target_named(target)
    except ValueError as error:
        raise InputError(str(error)) from error

    def measure(machine: "Machine") -> "Areas":
        with steps.step(f"Elaborating {machine.name}"):
            design = machine_design(machine, with_core=False)
        request = SynthesisRequest(design, machine.name, place=False)
        reports = {target: synthesise(request, target, steps.step) for target in targets}
        return {target: {name: report.needed(name) for name in _RESOURCES if name in report.units}
                for target, report in reports.items()}

    return measure
