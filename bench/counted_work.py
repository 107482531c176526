"""Counts of a run, layer by layer: saved by the benchmarks, and priced again whenever prices change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.energy.actions import actions_of
from tilewright.energy.activity import doubts
from tilewright.energy.energies import EnergyEstimate, sum_energies
from tilewright.energy.estimate import estimate
from tilewright.energy.pricing import DEFAULT, Pricing
from tilewright.isa.counters import COUNTERS
from tilewright.isa.machine import Machine
from tilewright.runtime.execution.report import Report
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS

__all__ = ["LayerWork", "energy_of", "work_of"]


@dataclass(frozen=True, slots=True)
class LayerWork:
    """Counts of one layer, or of the time after the last one.

    Attributes
    ----------
    counts : Mapping[str, int]
        All counters of isa.counters by name.
    toggles : Mapping[str, int]
        Register bits of each block that changed, as `energy.activity` predicts.
    instructions : int
        Of the host core.
    curved_words : int
        Words of 16 bits that followed a curve.
    """

    counts: Mapping[str, int]
    toggles: Mapping[str, int]
    instructions: int
    curved_words: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "LayerWork":
        """Return the work that `dataclasses.asdict` and JSON have turned into ``data``."""
        return cls(**data)


def work_of(report: Report) -> tuple[LayerWork, ...]:
    """Return the work of each layer of a run whose toggles are predicted, and of its tail."""
    layers = [LayerWork(dict(layer.counts), dict(layer.toggles), layer.instructions, layer.curved_words)
              for layer in report.layers]
    tail = dict.fromkeys((counter.name for counter in COUNTERS), 0) | {"cycles": report.tail_cycles}
    toggles = {block: report.toggles[block] - sum(each.toggles[block] for each in layers) for block in ENERGY_BLOCKS}
    return (*layers, LayerWork(tail, toggles, 0))


def energy_of(work: Sequence[LayerWork], machine: Machine, pricing: Pricing = DEFAULT) -> EnergyEstimate:
    """Return the energy of a run.

    Raises
    ------
    InputError
        If there is no such technology, or clocks cannot be gated in it.
    """
    technology = pricing.load(machine.array)
    clock = pricing.clock(technology)
    return sum_energies(estimate(
        actions_of(each.counts, machine, each.instructions, each.toggles, clock, curved=each.curved_words), technology,
        doubts(machine.array)) for each in work)
