"""The largest costs of a run: its cycles by cause, each cycle counted once, with the layers in which they fall."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.runtime.execution.core_share import CoreCause
from tilewright.runtime.execution.report import LayerReport, Report

__all__ = ["CORE", "MOST_COSTS", "WORK", "CycleCost", "largest_costs"]

MOST_COSTS = 5
"""Of the largest a reader is told."""

CORE = "core"
"""Cause of the cycles in which the host core computes a layer."""

WORK = "mac_issue"
"""Cause of the cycles in which the multipliers work; causes of waiting are named like their counters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleCost:
    """Cycles of one cause.

    Attributes
    ----------
    cause : str
        A counter ``mac_*`` of `isa.counters`, or `CORE`.
    core : CoreCause or None
        What the host core computes, why, and what to change; None for other causes.
    cycles : int
    share : float
        Of all cycles of the run, 0 to 1.
    layers : tuple of (int, int)
        Index of each layer in the report and its cycles of this cause, the largest first.
    """

    cause: str
    core: CoreCause | None = None
    cycles: int
    share: float
    layers: tuple[tuple[int, int], ...]


def largest_costs(report: Report) -> tuple[CycleCost, ...]:
    """Return the cycles of a run by cause, the largest cause first.

    A layer of the host core counts for its operator and the reason why the core computes it; of other layers each cycle
    counts for what the multipliers did or waited for. Together they are the cycles of all layers.
    """
    found = [_core_cost(cause, report) for cause in report.core_share.causes]
    mine = [(index, layer) for index, layer in enumerate(report.layers) if layer.algorithm != CORE]
    for cause in dict.fromkeys(name for _, layer in mine for name in _cycles_by_cause(layer)):
        parts = [(index, _cycles_by_cause(layer).get(cause, 0)) for index, layer in mine]
        found.append(_cost(cause, parts, report.cycles))
    return tuple(sorted((cost for cost in found if cost.cycles), key=lambda cost: -cost.cycles))


def _cycles_by_cause(layer: LayerReport) -> Mapping[str, int]:
    """Return a layer's cycles by what the multipliers did: those not spent waiting were spent working."""
    return {WORK: layer.cycles - sum(layer.stalls.values()), **layer.stalls}


def _core_cost(cause: CoreCause, report: Report) -> CycleCost:
    parts = [(index, layer.cycles) for index, layer in enumerate(report.layers)
             if layer.algorithm == CORE and (layer.operator, layer.reason) == (cause.operator, cause.reason)]
    return _cost(CORE, parts, report.cycles, cause)


def _cost(cause: str, parts: Sequence[tuple[int, int]], total: int, core: CoreCause | None = None) -> CycleCost:
    layers = tuple(sorted((part for part in parts if part[1]), key=lambda part: -part[1]))
    cycles = sum(each for _, each in layers)
    return CycleCost(cause=cause, core=core, cycles=cycles, share=cycles / max(total, 1), layers=layers)
