"""Pages of area from runs of `tilewright synth`: docs/area.md of the presets, docs/families.md of FPGA families.

``python -m tilewright.hardware.synthesis.area_page docs/area.md`` writes the first, and its pictures: of shares beside
it, and of floorplans below ``pictures/``. ``--cases`` limits it. With ``--families`` it writes the second, without any.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.hardware.synthesis.floorplan import floorplan
from tilewright.hardware.synthesis.flow import synthesise
from tilewright.hardware.synthesis.picture import picture
from tilewright.hardware.synthesis.sources import machine_design
from tilewright.hardware.synthesis.synthesis_report import SynthesisReport, SynthesisRequest
from tilewright.hardware.synthesis.synthesis_tables import figure, path_delay, rows, summary
from tilewright.runtime.design.design_flags import design_of
from tilewright.tools.files import write_file
from tilewright.tools.page_origin import with_origin
from tilewright.tools.progress import Steps
from tilewright.tools.templates import render

__all__ = ["CASES", "FAMILIES", "AreaCase", "families", "main", "page", "run"]


@dataclass(frozen=True, slots=True)
class AreaCase:
    """A machine, as ``--machine`` states it, on a target; ``place`` includes the timing of standard cells.

    ``seed`` and ``freq``, the goal in MHz, are of place and route. ``row_only`` cases have a row of the table and no
    section by block. On ECP5 memories keep their ``collision_logic``, as the area model has it.
    """

    machine: str
    target: str
    with_core: bool = False
    place: bool = True
    seed: int = 1
    freq: float = 80
    row_only: bool = False
    collision_logic: bool = True

    @property
    def name(self) -> str:
        """Return the name of the case for ``--cases``."""
        return f"{self.machine}{'+core' if self.with_core else ''}@{self.target}"

    @property
    def floorplan(self) -> str | None:
        """Return the picture of the placed design, as the page names it; None but for the small device.

        It would place and route a large one, which takes half an hour, once more.
        """
        if not self.place or self.target != "ecp5-25k":
            return None
        return f"pictures/floorplan-{self.machine}{'-core' if self.with_core else ''}.svg"

    @property
    def command(self) -> str:
        """Return the command that gives it."""
        flags = (" --with-core" if self.with_core else "") + ("" if self.place else " --no-place")
        flags += " --collision-logic" if self.collision_logic and self.target.startswith("ecp5") else ""
        flags += f" --seed {self.seed}" if self.seed != 1 else ""
        flags += f" --clock {self.freq:g}MHz" if self.freq != 80 else ""
        return f"tilewright synth --target {self.target} --machine {self.machine}{flags}"


CASES = (
    # Of three seeds the one in the middle: docs/decisions/fpga.md, "`base` routes on the LFE5U-85F".
    AreaCase("base", "ecp5-85k", seed=3), AreaCase("base,array=winograd", "ecp5-85k"),
    AreaCase("nano", "ecp5-25k"),
    AreaCase("nano", "ecp5-25k", with_core=True, freq=40),
    AreaCase("large", "ecp5-85k", place=False), AreaCase("nano", "ice40up5k", place=False, row_only=True),
    *(AreaCase(machine, "xc7", place=False, row_only=True) for machine in ("nano", "base", "large")),
    AreaCase("nano", "osu018"), AreaCase("base", "osu018"), AreaCase("nano", "sky130"), AreaCase("base", "sky130"),
)

FAMILIES = tuple(AreaCase(machine, target, place=False, row_only=True, collision_logic=False)
                 for machine in ("nano", "base")
                 for target in ("ecp5-85k", "nexus-40", "gw2a-18", "gw5a-25", "xc7", "cyclonev", "gatemate-a1"))
"""Synthesised for each family, and not placed."""

_TEMPLATE = Path(__file__).with_name("area_page.md.j2")
_FAMILIES_TEMPLATE = Path(__file__).with_name("families_page.md.j2")


def page(reports: Sequence[tuple[AreaCase, SynthesisReport]], image: str) -> str:
    """Return the page: a table of all cases, then each by block; it names usual cases that are missing."""
    versions = ", ".join(dict.fromkeys(step.tool for _, report in reports for step in report.steps))
    done = {case for case, _ in reports}
    names = ", ".join(case.name for case in CASES if case not in done)
    return render(_TEMPLATE, left_out=names, versions=versions, image=image, reports=reports,
                  summary_row=_summary_row, block_table=_block_table, summary=summary)


def families(reports: Sequence[tuple[AreaCase, SynthesisReport]]) -> str:
    """Return the page of families: a row of each machine and target; it names usual cases that are missing."""
    done = {case for case, _ in reports}
    left_out = ", ".join(case.name for case in FAMILIES if case not in done)
    versions = ", ".join(dict.fromkeys(step.tool for _, report in reports for step in report.steps))
    cells = [(report.target_title, *_summary_row(report)) for _, report in reports]
    return render(_FAMILIES_TEMPLATE, versions=versions, left_out=left_out, rows=[
        [machine, title, *figures[:4], fits] for title, machine, _, *figures, fits, _, _ in cells])


def _summary_row(report: SynthesisReport) -> list[str]:
    timing = report.timing
    limit = path_delay(timing.path) if timing else ""
    fits = report.device or ("no" if report.capacity else "–")
    if report.capacity:
        logic = f"{figure(report.total('LUT'))} LUT"
        others = [figure(report.total(name)) if name in report.units else "–" for name in ("FF", "DSP", "BRAM")]
    else:
        logic = f"{report.total('area') / 1e6:.2f} mm²"
        memory = f"{report.total('memory') / 1e6:.2f} mm²" if "memory" in report.units else "not priced"
        others = [figure(report.total("flip-flops")), "–", memory]
    return [report.design, report.target, logic, *others, fits, f"{timing.fmax_mhz:.1f}" if timing else "–", limit]


def _block_table(report: SynthesisReport) -> list[list[str]]:
    """Return the rows of the table by block: blocks, their sum, and what the devices have."""
    total = ["**in all**", *(f"**{figure(report.total(name))}**" for name in report.units)]
    devices = [[f"{device} has", *(figure(has[name]) if name in has else "" for name in report.units)]
               for device, has in report.capacity.items()]
    return [*map(list, rows(report)), total, *devices]


def run(cases: Iterable[AreaCase], steps: Steps) -> list[tuple[AreaCase, SynthesisReport]]:
    """Synthesise cases, one after the other; what is finished is kept."""
    found = []
    for case in cases:
        with steps.step(f"Elaborating {case.machine}"):
            design = machine_design(design_of(case.machine).machine, with_core=case.with_core)
        request = SynthesisRequest(design, case.machine, with_core=case.with_core, place=case.place,
                                   seed=case.seed, freq=case.freq, any_collision=not case.collision_logic,
                                   floorplan=case.floorplan is not None)
        found.append((case, synthesise(request, case.target, steps.step)))
    return found


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("--cases", metavar="CASE", nargs="+", help=f"of {'; '.join(case.name for case in CASES)}")
    parser.add_argument("--families", action="store_true", help="write the page of FPGA families instead")
    given = parser.parse_args()
    named = {case.name: case for case in (FAMILIES if given.families else CASES)}
    wanted = given.cases or list(named)
    if unknown := [name for name in wanted if name not in named]:
        parser.error(f"cases must be of {', '.join(named)}, not {', '.join(unknown)}")
    reports = run([named[name] for name in wanted], Steps())
    if given.families:
        write_file(given.page, with_origin(families(reports), "make families").encode())
        return
    image = given.page.with_suffix(".svg")
    write_file(image, picture([report for case, report in reports if not case.row_only]).encode())
    for case, report in reports:
        if case.floorplan:
            drawn = floorplan(report.cells, f"{report.design} on {report.target_title}")
            write_file(given.page.parent / case.floorplan, drawn.encode())
    write_file(given.page, with_origin(page(reports, image.name), "make area").encode())


if __name__ == "__main__":
    main()
