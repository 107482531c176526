"""The command ``calibrate``: measure the prices of a technology; see `hardware.calibration.calibration`."""

import json
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import MachineName, machine_named
from tilewright.errors import InputError
from tilewright.isa.machine import Machine
from tilewright.tools.files import reason, require_place

if TYPE_CHECKING:
    from tilewright.hardware.calibration.record import CalibrationRecord

__all__ = ["CalibrationTarget", "calibrate", "register"]


class CalibrationTarget(StrEnum):
    """Libraries and memories whose energy can be measured."""

    osu018 = "osu018"
    sky130 = "sky130"
    sram = "sram"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright calibrate --tech osu018 -o out/osu018")(calibrate)


def calibrate(tech: Annotated[CalibrationTarget, typer.Option("--tech", show_default=False,
                                                              help="Cell library, or memories.")],
              output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", show_default=False,
                                                   help="Folder to write.")],
              machine: MachineName = "base",
              blocks: Annotated[str | None, typer.Option("--blocks", metavar="A,B", show_default=False,
                                                         help="Measure only these blocks of the coprocessor.")] = None,
              core: Annotated[Path | None, typer.Option(
                  "--core", metavar="FILE", show_default=False,
                  help="Measure only the RISC-V cores, and take the rest from the calibration.json of an earlier run.")]
              = None) -> None:
    """Measure energy prices at gate level, on netlists of the blocks and cores; SRAM prices come from CACTI.

    For sky130 the command first characterises the cells in SPICE.

    A library takes about ten minutes of processor time, most of it Yosys and simulations. Finished steps are kept, so
    an interrupted run continues where it was. The command writes the technology file, a page with the errors, and both
    as JSON.
    """
    size = machine_named(machine)
    if tech is CalibrationTarget.sram and (blocks is not None or core is not None or machine != "base"):
        raise InputError("Options --machine, --core and --blocks need a library of cells as --tech, not sram")
    if core is not None and (blocks is not None or machine != "base"):
        raise InputError("Option --core excludes --machine and --blocks, which are those of the earlier run")
    earlier = _earlier(core, tech) if core is not None else None
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"Folder {str(output)!r} cannot be made: {error.strerror}; name another with -o") from error
    require_place(output / "calibration.json")
    if tech is CalibrationTarget.sram:
        _memories(output)
    else:
        _write(_core_again(earlier) if earlier is not None else _measured(tech, size, blocks), output)
    typer.echo(f"Written to {output}")


def _earlier(path: Path, tech: CalibrationTarget) -> "CalibrationRecord":
    """Return the figures in ``path``, without those of the cores."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"File {str(path)!r} must be the calibration.json of an earlier run: "
                         f"{reason(error)}") from error
    if not isinstance(found, dict) or not {"technology", "machine", "workloads", "blocks"} <= set(found):
        raise InputError(f"File {str(path)!r} must be the calibration.json of an earlier run, and has no blocks")
    if found["technology"] != tech.value:
        raise InputError(f"File {str(path)!r} must be a calibration of {tech.value}, not of {found['technology']!r}")
    from tilewright.hardware.calibration.record import CalibrationRecord

    try:
        return CalibrationRecord.from_json(found | {"cores": {}})
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"File {str(path)!r} must be the calibration.json of an earlier run, and does not have its "
                         f"form: {error}") from error


def _measured(tech: CalibrationTarget, machine: Machine, blocks: str | None) -> "CalibrationRecord":
    """Return the figures of a new calibration: ``blocks`` alone are without other arrays."""
    from tilewright.hardware.calibration.calibration import calibrate as measured
    from tilewright.hardware.calibration.captures import WORKLOADS
    from tilewright.hardware.calibration.processes import PROCESSES
    from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS
    from tilewright.tools.progress import Steps

    wanted = tuple(blocks.split(",")) if blocks else None
    if unknown := [name for name in wanted or () if name not in ENERGY_BLOCKS]:
        raise InputError(f"Blocks must be of {', '.join(ENERGY_BLOCKS)}, not {unknown[0]!r}")
    return measured(PROCESSES[tech.value], machine, WORKLOADS, Steps(), wanted).record()


def _core_again(found: "CalibrationRecord") -> "CalibrationRecord":
    """Return figures with those of the cores measured now."""
    from tilewright.hardware.calibration.cores import calibrate_cores
    from tilewright.hardware.calibration.processes import PROCESSES
    from tilewright.tools.progress import Steps

    process, steps = PROCESSES[found.technology], Steps()
    cores = calibrate_cores(process.library(steps), process, steps)
    return replace(found, cores={name: core.record() for name, core in cores.items()})


def _write(found: "CalibrationRecord", output: Path) -> None:
    from tilewright.hardware.calibration.calibration_page import page
    from tilewright.hardware.calibration.technology_file import technology_text

    (output / f"{found.technology}.toml").write_text(technology_text(found), encoding="utf-8")
    (output / "calibration.md").write_text(page(found), encoding="utf-8")
    (output / "calibration.json").write_text(json.dumps(found.to_json(), indent=1) + "\n", encoding="utf-8")


def _memories(output: Path) -> None:
    from tilewright.hardware.gates.cells.cacti import write_table
    from tilewright.tools.progress import Steps

    with Steps().step("Characterising static RAM") as show:
        write_table(output / "sram.toml", lambda name, done, total: show(f"{name}, {done} of {total}"))
