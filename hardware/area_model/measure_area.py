"""Synthesise the machines for the area model: ``python -m tilewright.hardware.area_model.measure_area``.

Each result is added to ``measured.json`` as soon as it is available, so that a stopped run continues where it was.
Machines that the file already has for a target are not synthesised again. The smallest machines come first.
"""

import argparse
import hashlib
import json
from dataclasses import asdict
from typing import Any

from tilewright.hardware.area_model.area_fit import MEASURED, load_measured
from tilewright.hardware.area_model.designs import designs
from tilewright.hardware.synthesis.flow import synthesise
from tilewright.hardware.synthesis.sources import VERILOG, machine_design
from tilewright.hardware.synthesis.synthesis_report import SynthesisRequest
from tilewright.isa.machine import Machine
from tilewright.tools.files import write_file
from tilewright.tools.progress import Steps

__all__ = ["main", "measured_row"]


def measured_row(machine: Machine, target: str, steps: Steps) -> dict[str, Any]:
    """Return what synthesis without place and route finds, as ``measured.json`` holds it.

    Raises
    ------
    ToolError
        If Yosys fails or is missing.
    """
    with steps.step(f"Elaborating {machine.name}"):
        design = machine_design(machine, with_core=False)
    report = synthesise(SynthesisRequest(design, machine.name, place=False), target, steps.step)
    blocks = {name: {key: round(value) for key, value in block.items() if value}
              for name, block in report.blocks.items()}
    gateware = hashlib.sha256(str(design.files[VERILOG]).encode()).hexdigest()[:16]
    return {"tool": report.steps[0].tool, "gateware": gateware, "machine": _stated(machine), "target": target,
            "blocks": blocks}


def main() -> None:
    """Synthesise what is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", default="ecp5-85k,sky130", help="(default: %(default)s)")
    parser.add_argument("--most-lanes", type=int, default=8, help="leave machines with more lanes out")
    given = parser.parse_args()
    for machine in designs():
        for target in given.targets.split(","):
            known = any(machine.same_as(each.machine) for each in load_measured(target))
            if machine.lanes <= given.most_lanes and not known:
                _add(measured_row(machine, target, Steps()))


def _stated(machine: Machine) -> dict[str, Any]:
    """Return the name of a machine and the parameters in which it differs from the default one."""
    default = asdict(Machine())
    return {name: value for name, value in asdict(machine).items() if name == "name" or value != default[name]}


def _add(row: dict[str, Any]) -> None:
    rows = [*json.loads(MEASURED.read_text(encoding="utf-8")), row]
    text = ",\n".join(json.dumps(each) for each in rows)
    write_file(MEASURED, f"[\n{text}\n]\n".encode())


if __name__ == "__main__":
    main()
