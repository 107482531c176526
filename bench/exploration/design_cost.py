"""Cost of a design: a task that depends only on its arguments, so that any worker may do it, and repeat it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from tilewright.bench.exploration.area_prediction import AreaTarget
from tilewright.errors import Error
from tilewright.runtime.design.design import Design
from tilewright.runtime.predicted_network import PredictedNetwork

__all__ = ["OBJECTIVES", "UNITS", "DesignOutcome", "Evaluator", "Verdict", "WeightedNetwork", "measures_of",
           "title_of"]

OBJECTIVES = {
    "cycles": "cycles of one run of each network, of a batch if there is one, by weight",
    "time": "milliseconds of the same, at the design's clock",
    "energy": "µJ of the same, main memory included",
    "area": "of the machine on its target, as predicted",
    "energy-delay": "energy times time",
}
"""Objectives that an exploration may make small."""

UNITS = {"time": "ms", "energy": "µJ", "energy-delay": "µJ ms"}
"""Units of objectives that have one."""


class Verdict(StrEnum):
    """Outcome of a trial of a design."""

    good = "good"
    beyond = "beyond a limit"
    impossible = "impossible"
    failed = "failed"


@dataclass(frozen=True, slots=True)
class WeightedNetwork:
    """A network, and how much its cost counts."""

    network: PredictedNetwork
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class DesignOutcome:
    """Findings on a design: its measures by name, or why there are none, and the seconds it took."""

    verdict: Verdict
    measures: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The networks and the target that designs are evaluated on. It may be pickled.

    Attributes
    ----------
    networks : sequence of WeightedNetwork
    target : AreaTarget
    """

    networks: Sequence[WeightedNetwork]
    target: AreaTarget

    def evaluate(self, design: Design) -> DesignOutcome:
        """Return the cost of a design. Any failure becomes a reason, not an exception."""
        began = time.perf_counter()
        try:
            measures = self._measure(design)
        except Error as error:
            return DesignOutcome(Verdict.impossible, {}, error.sentence, time.perf_counter() - began)
        except Exception as error:  # noqa: BLE001 - one design's error is a row of the table, not the study's end
            reason = f"{type(error).__name__}: {error}"
            return DesignOutcome(Verdict.failed, {}, reason[:500], time.perf_counter() - began)
        return DesignOutcome(Verdict.good, measures, "", time.perf_counter() - began)

    def _measure(self, design: Design) -> dict[str, float]:
        found = {"cycles": 0.0, "time": 0.0, "energy": 0.0, "energy-delay": 0.0} | self.target.predict(design.machine)
        for each in self.networks:
            report = each.network.predict(design)
            found["cycles"] += each.weight * report.cycles
            found["time"] += each.weight * report.milliseconds
            found["energy"] += each.weight * report.energy.total_uj
            found[f"{each.network.name.lower()}.cycles"] = float(report.cycles)
        found["energy-delay"] = found["energy"] * found["time"]
        return found


def measures_of(networks: Sequence[str], target: AreaTarget) -> tuple[str, ...]:
    """Return the names of what an evaluator finds, which are those that may be limited."""
    return (*OBJECTIVES, *target.measures, *(f"{name.lower()}.cycles" for name in networks))


def title_of(measure: str) -> str:
    """Return the title of an axis that shows ``measure``: its name, and its unit if it has one."""
    return f"{measure} ({UNITS[measure]})" if measure in UNITS else measure
