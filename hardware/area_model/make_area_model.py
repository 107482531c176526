"""Fit the area model, and write the page docs/area-model.md: ``make area-model``."""

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.hardware.area_model.area_fit import (
    COEFFICIENTS,
    FITTED,
    SCALED,
    HeldOutError,
    MeasuredArea,
    errors_of,
    fit,
    held_out,
    load_measured,
    ranges,
    ratios,
)
from tilewright.hardware.area_model.structure import block_rams, memories, multipliers
from tilewright.isa.machine import EXTRA_UNITS, LIMITS, UNITS, Machine
from tilewright.tools.files import write_file
from tilewright.tools.markdown import table
from tilewright.tools.templates import render

__all__ = ["TargetFit", "fit_all", "main", "page"]

_TEMPLATE = Path(__file__).with_name("area_model_page.md.j2")

_TITLES = {
    "LUT": "LUT4", "carry": "carry cells (CCU2C)", "FF": "flip-flops", "LUT RAM": "LUT RAM (TRELLIS_DPR16X4)",
    "area": "cell area", "flip-flops": "flip-flops",
}

_SHOWN = {"ecp5-85k": "LUT", "sky130": "area"}
"""Resource of which the page shows every machine."""


@dataclass(frozen=True, slots=True)
class TargetFit:
    """Fit to the machines that were synthesised for a target, and how each is mispredicted from the others."""

    target: str
    measured: Sequence[MeasuredArea]
    coefficients: Mapping[str, Mapping[str, list[float]]]
    held_out: Sequence[Mapping[str, float]]

    @property
    def errors(self) -> dict[str, HeldOutError]:
        """Errors by resource."""
        return errors_of(self.held_out)

    def to_json(self) -> dict[str, Any]:
        """Return the entry of a target in coefficients.json."""
        return {"machines": len(self.measured), "ranges": ranges([each.machine for each in self.measured]),
                "errors": {resource: asdict(error) for resource, error in self.errors.items()},
                "coefficients": self.coefficients}


def fit_all() -> list[TargetFit]:
    """Return the fits to all targets that have one of their own."""
    found = []
    for target, resources in FITTED.items():
        measured = load_measured(target)
        found.append(TargetFit(target, measured, fit(measured, resources), held_out(measured, resources)))
    return found


def page(fits: Sequence[TargetFit]) -> str:
    """Return the page: errors by resource, then every machine of each target."""
    return render(_TEMPLATE, fits=fits, errors=_errors(fits), limits=_limits(fits), counted=_counted(fits),
                  machines={each.target: _machines(each) for each in fits}, titles=_TITLES, shown=_SHOWN)


def _counted(fits: Sequence[TargetFit]) -> dict[str, int]:
    """Return how many machines have other multipliers or block RAMs than was counted, and by how many at most."""
    rows = [row for each in fits if each.target.startswith("ecp5") for row in each.measured]
    dsp = [abs(sum(multipliers(row.machine).values()) - int(row.total("DSP"))) for row in rows]
    bram = [abs(sum(map(block_rams, memories(row.machine))) - int(row.total("BRAM"))) for row in rows]
    return {"machines": len(rows), "dsp": sum(map(bool, dsp)), "bram": sum(map(bool, bram)), "most": max(bram)}


def _errors(fits: Sequence[TargetFit]) -> str:
    rows = [[each.target, _TITLES[resource], f"{len(each.measured)}", f"{100 * error.rms:.1f} %",
             f"{100 * error.worst:.1f} %"] for each in fits for resource, error in each.errors.items()]
    return table(["target", "resource", "machines", "error, rms", "largest error"], rows, left=2)


def _limits(fits: Sequence[TargetFit]) -> str:
    """Return the table of the sizes that were synthesised and of those that there are."""
    found = ranges([each.machine for fit_ in fits for each in fit_.measured])
    return table(["parameter", "synthesised", "possible"],
                 [[f"`{name}`", *(f"{least:,} to {most:,}" for least, most in (found[name], LIMITS[name]))]
                  for name in LIMITS])


def _machines(each: TargetFit) -> str:
    resource = _SHOWN[each.target]
    rows = [[row.machine.name, _described(row.machine), f"{row.total(resource):,.0f}",
             f"{row.total(resource) * (1 + error[resource]):,.0f}", f"{100 * error[resource]:+.1f} %"]
            for row, error in zip(each.measured, each.held_out, strict=True)]
    return table(["machine", "parameters", "synthesised", "predicted from the others", "error"], rows, left=2)


def _described(machine: Machine) -> str:
    """Return the parameters of a machine in short."""
    sizes = " ".join(f"{getattr(machine, name) // 1024}" for name in
                     ("activation_bytes", "weight_bytes", "result_bytes"))
    absent = [unit.replace("_", " ") for unit in UNITS
              if not getattr(machine, unit) and unit not in EXTRA_UNITS
              and (unit != "column_reuse" or machine.winograd)]
    return (f"{machine.array}, {machine.lanes} lanes in {machine.clusters}, {machine.tiles} tiles, "
            f"{machine.post_lanes} post lanes, bus {machine.bus_bytes}, KiB {sizes}, "
            f"{machine.parameter_channels} channels, queue {machine.queue_depth}"
            f"{', without ' + ', '.join(absent) if absent else ''}")


def main() -> None:
    """Write the coefficients and the page, and print the errors."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    given = parser.parse_args()
    fits = fit_all()
    found = {each.target: each.to_json() for each in fits} | {name: {"ratios": ratios(name)} for name in SCALED}
    write_file(COEFFICIENTS, f"{json.dumps(found, indent=1)}\n".encode())
    write_file(given.page, page(fits).encode())
    for each in fits:
        for resource, error in each.errors.items():
            print(f"{each.target}, {resource}: {len(each.measured)} machines, each predicted from the others: "
                  f"{100 * error.rms:.1f} % rms, {100 * error.worst:.1f} % at most")


if __name__ == "__main__":
    main()
