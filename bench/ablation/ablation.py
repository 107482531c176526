"""Worth of each instruction and unit: cycles, energy, bytes and area of a machine with it and without it.

A unit is taken out of the machine, the network is planned anew for what is left (another instruction, or the host
core), and its cycles are predicted as by engine ``cycles``. Area is measured by whoever asks, for the machine with each
unit and without it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tilewright.errors import CompileError
from tilewright.isa.lacking import variants_of
from tilewright.isa.machine import UNITS, Machine
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_file import machine_of
from tilewright.runtime.execution.report import Report
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.progress import Steps

__all__ = ["Ablation", "AblationRow", "Areas", "InferenceCost", "MeasureArea", "ablate", "instructions_lost",
           "removals"]

_LESS_ARRAYS = {"conv23": {"winograd": "plain", "winograd_inner": "inner"},
                "inner product": {"inner": "plain", "winograd_inner": "winograd"}}
"""By what is left out, the array that is left of one that has it: with as many multipliers in its lanes."""

Areas = Mapping[str, Mapping[str, float]]
"""By target, how much of each resource a machine takes."""

MeasureArea = Callable[[Machine], Areas]


@dataclass(frozen=True, slots=True)
class InferenceCost:
    """Cycles, bytes over the memory bus and energy of one inference."""

    cycles: int
    bytes: int
    energy_uj: float

    @classmethod
    def of(cls, report: Report) -> "InferenceCost":
        """Return what a report says."""
        return cls(report.cycles, sum(layer.bytes_read + layer.bytes_written for layer in report.layers),
                   report.energy.total_uj)


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRow:
    """One network on a machine with a unit and without it.

    Attributes
    ----------
    instructions : tuple of str
        What the machine without the unit has no more.
    without : InferenceCost or None
        None if the network cannot be compiled for what is left; ``reason`` then says why.
    area_with, area_without : Areas
        Empty if no area was measured.
    """

    model: str
    machine: str
    unit: str
    instructions: tuple[str, ...]
    having: InferenceCost
    without: InferenceCost | None
    reason: str = ""
    area_with: Areas
    area_without: Areas

    @property
    def speedup(self) -> float | None:
        """Cycles without the unit over those with it."""
        return None if self.without is None else self.without.cycles / self.having.cycles

    def added(self, target: str, resource: str) -> float | None:
        """Return by what share of the machine without it the unit makes a resource grow; None where it has none."""
        before = self.area_without.get(target, {}).get(resource)
        return None if not before else self.area_with[target][resource] / before - 1

    def gain_per_area(self, target: str, resource: str) -> float | None:
        """Return the gain in speed over the growth in area, both as shares: above 1 a unit earns what it takes."""
        added = self.added(target, resource)
        return None if added is None or added <= 0 or self.speedup is None else (self.speedup - 1) / added

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        gains = {target: {resource: self.gain_per_area(target, resource) for resource in resources}
                 for target, resources in self.area_with.items()}
        return asdict(self) | {"with": asdict(self.having), "speedup": self.speedup, "gain_per_area": gains}


@dataclass(frozen=True, slots=True)
class Ablation:
    """Rows of networks on machines."""

    rows: tuple[AblationRow, ...]

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers."""
        return {"rows": [row.to_json() for row in self.rows]}


def removals(machine: Machine) -> dict[str, Machine]:
    """Return the machines that lack one more unit than ``machine``, by the unit."""
    found = {}
    for unit, arrays in _LESS_ARRAYS.items():
        if machine.array in arrays:
            found[unit] = machine_of(machine, {"array": arrays[machine.array]}, f"{machine.name} without {unit}")
    for unit in UNITS:
        if getattr(machine, unit) and (unit != "column_reuse" or machine.winograd):
            words = unit.replace("_", " ")
            without: dict[str, Any] = {"name": f"{machine.name} without {words}", unit: False}
            found[words] = replace(machine, **without)
    return found


def instructions_lost(machine: Machine, less: Machine) -> tuple[str, ...]:
    """Return the variants of instructions that ``less`` has no more, as ``conv23.run``."""
    left = {(instruction.mnemonic, variant.name) for instruction, variant in variants_of(less)}
    return tuple(f"{instruction.mnemonic}.{variant.name}" for instruction, variant in variants_of(machine)
                 if (instruction.mnemonic, variant.name) not in left)


def ablate(networks: Sequence[PredictedNetwork], designs: Iterable[Design], steps: Steps,
           measure: MeasureArea | None = None) -> Ablation:
    """Return a row for each network, design and unit.

    Raises
    ------
    CompileError
        If a network does not fit a design with all of its units.
    """
    rows = []
    for design in designs:
        machine = design.machine
        area = measure(machine) if measure else {}
        areas = {unit: measure(less) if measure else {} for unit, less in removals(machine).items()}
        for network in networks:
            with steps.step(f"Predicting {network.name} on {machine.name}"):
                having = InferenceCost.of(network.predict(design))
            for unit, less in removals(machine).items():
                with steps.step(f"Predicting {network.name} on {less.name}"):
                    without, reason = _cost(network, replace(design, machine=less))
                rows.append(AblationRow(
                    model=network.name, machine=machine.name, unit=unit, having=having, without=without, reason=reason,
                    instructions=instructions_lost(machine, less), area_with=area, area_without=areas[unit]))
    return Ablation(tuple(rows))


def _cost(network: PredictedNetwork, design: Design) -> tuple[InferenceCost | None, str]:
    """Return the cost of a network on a design, or why it has none."""
    try:
        return InferenceCost.of(network.predict(design)), ""
    except CompileError as error:
        return None, str(error)
