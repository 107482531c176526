"""Worth of each instruction and unit: cycles, energy, bytes and area of a machine with it and without it.

A unit is taken out of the machine, the network is planned anew for what is left (another instruction, or the host
core), and its cycles are predicted as by engine ``cycles``. Areas, for the machine with each unit and without it, are
predicted too (`predicted_areas`), or measured by whoever asks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tilewright.errors import CompileError
from tilewright.hardware.area_model.predicted_area import predict_area
from tilewright.isa.lacking import variants_of
from tilewright.isa.machine import DEFAULT_MACHINE, PRESETS, UNITS, Machine
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_file import machine_of
from tilewright.runtime.execution.report import Report
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.progress import Steps

__all__ = ["Ablation", "AblationRow", "Areas", "InferenceCost", "MeasureArea", "ablate", "instructions_lost",
           "predicted_areas", "removals"]

_LESS_ARRAYS = {"conv23": {"winograd": "plain", "winograd_inner": "inner"},
                "inner product": {"inner": "plain", "winograd_inner": "winograd"}}
"""By what is left out, the array that is left of one that has it: with as many multipliers in its lanes."""

PREDICTED_TARGETS = ("ecp5-85k", "sky130")
_PREDICTED = ("LUT", "DSP", "BRAM", "area", "memory")

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
        """Return the cost stated in a report."""
        return cls(report.cycles, sum(layer.bytes_read + layer.bytes_written for layer in report.layers),
                   report.energy.total_uj)


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRow:
    """One network on a machine with a unit and without it.

    Attributes
    ----------
    instructions : tuple of str
        Instructions that the machine without the unit lacks.
    without : InferenceCost or None
        None if the network cannot be compiled for what is left; ``reason`` then says why.
    area_with, area_without : Areas
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
        """Return the growth of a resource by the unit, as a share of the machine without it; None if that has none."""
        before = self.area_without.get(target, {}).get(resource)
        return None if not before else self.area_with[target][resource] / before - 1

    def gain_per_area(self, target: str, resource: str) -> float | None:
        """Return the gain in speed over the growth in area, both as shares: above 1 a unit is worth its area."""
        added = self.added(target, resource)
        return None if added is None or added <= 0 or self.speedup is None else (self.speedup - 1) / added

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        gains = {target: {resource: self.gain_per_area(target, resource) for resource in resources}
                 for target, resources in self.area_with.items()}
        return asdict(self) | {"with": asdict(self.having), "speedup": self.speedup, "gain_per_area": gains}


@dataclass(frozen=True, slots=True)
class Ablation:
    """Rows of networks on machines.

    Attributes
    ----------
    area_errors : mapping
        By target and resource, the error of predicted areas, as a share (rms); empty if areas were synthesised.
    """

    rows: tuple[AblationRow, ...]
    area_errors: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers."""
        return {"rows": [row.to_json() for row in self.rows], "area_errors": self.area_errors}


def predicted_areas(machine: Machine) -> Areas:
    """Return the predicted area of a machine: LUTs, multipliers and block RAMs on ECP5, µm² in sky130."""
    totals = {target: predict_area(machine, target).totals() for target in PREDICTED_TARGETS}
    return {target: {name: total[name] for name in _PREDICTED if name in total} for target, total in totals.items()}


def removals(machine: Machine) -> dict[str, Machine]:
    """Return the machines that lack one more unit than ``machine``, by the unit."""
    found = {}
    for unit, arrays in _LESS_ARRAYS.items():
        if machine.array in arrays:
            found[unit] = machine_of(machine, {"array": arrays[machine.array]}, f"{machine.name} without {unit}")
    for unit in UNITS:
        needed = unit == "integer_requantise" and not machine.float_requantise
        if getattr(machine, unit) and not needed and (unit != "column_reuse" or machine.winograd):
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
    """Return a row for each network, design and unit; areas are predicted unless ``measure`` measures them.

    Raises
    ------
    CompileError
        If a network does not fit a design with all of its units.
    """
    rows = []
    for design in designs:
        machine = design.machine
        area_of = measure or predicted_areas
        area, areas = area_of(machine), {unit: area_of(less) for unit, less in removals(machine).items()}
        for network in networks:
            with steps.step(f"Predicting {network.name} on {machine.name}"):
                having = InferenceCost.of(network.predict(design))
            for unit, less in removals(machine).items():
                with steps.step(f"Predicting {network.name} on {less.name}"):
                    without, reason = _cost(network, replace(design, machine=less))
                rows.append(AblationRow(
                    model=network.name, machine=machine.name, unit=unit, having=having, without=without, reason=reason,
                    instructions=instructions_lost(machine, less), area_with=area, area_without=areas[unit]))
    return Ablation(tuple(rows), {} if measure else _errors(rows))


def _errors(rows: Sequence[AblationRow]) -> Mapping[str, Mapping[str, float]]:
    """Return the errors of predicted areas: those of the model, whatever the machine."""
    targets = rows[0].area_with if rows else {}
    errors = {target: predict_area(PRESETS[DEFAULT_MACHINE], target).errors for target in targets}
    return {target: {name: errors[target][name].rms for name in found if name in errors[target]}
            for target, found in targets.items()}


def _cost(network: PredictedNetwork, design: Design) -> tuple[InferenceCost | None, str]:
    """Return the cost of a network on a design, or why it has none."""
    try:
        return InferenceCost.of(network.predict(design)), ""
    except CompileError as error:
        return None, str(error)
