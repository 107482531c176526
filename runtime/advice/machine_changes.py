"""Changes of the machine or of what is stored that help against a cost, and the cycles each is predicted to save."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tilewright.compiler.network.options import Options
from tilewright.errors import Error
from tilewright.isa.machine import Machine
from tilewright.runtime.advice.largest_costs import MOST_COSTS, WORK, CycleCost, largest_costs
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_file import machine_of
from tilewright.runtime.execution.report import Report
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.progress import Steps

__all__ = ["LEAST_SHARE", "OUTPUTS_ONLY", "RunChange", "TriedChange", "best_change", "tried_changes"]

OUTPUTS_ONLY = "outputs_only"
"""The change that stores no tensor only to be compared, as a compiled model stores none."""

_HELPFUL = {
    WORK: ("lanes",),
    "mac_wait_activations": (OUTPUTS_ONLY, "bus_bytes", "activation_bytes"),
    "mac_wait_weights": ("bus_bytes", "weight_bytes"),
    "mac_wait_post": ("post_lanes", "bus_bytes"),
    "mac_idle_post": ("post_lanes",),
    "mac_idle_load": ("bus_bytes",),
    "mac_idle_host": ("queue_depth",),
}
"""By cause, parameters of the machine of which twice as much may help; the likeliest first."""

_MOST_CHANGES = 3
"""Each is a prediction of the whole network."""

_MOST_COMMANDS = 60_000
"""Programs of more commands take longer to predict than a reader waits."""

LEAST_SHARE = 0.02
"""Causes of a smaller part of all cycles are not worth a prediction."""


@dataclass(frozen=True, slots=True)
class RunChange:
    """A parameter and its new value: one of `isa.machine.Machine`, or `OUTPUTS_ONLY`."""

    key: str
    value: int

    @property
    def option(self) -> str:
        """The change as it is typed: an option, or behind the comma of ``--machine``."""
        return "--outputs-only" if self.key == OUTPUTS_ONLY else f"{self.key}={self.value}"

    def machine(self, machine: Machine) -> Machine:
        """Return ``machine`` with the change, as ``--machine`` makes it.

        Raises
        ------
        ValueError
            If no machine has that value.
        """
        return machine if self.key == OUTPUTS_ONLY else machine_of(machine, {self.key: self.value}, machine.name)


@dataclass(frozen=True, slots=True)
class TriedChange:
    """A change, and the cycles of the whole run with it and without it, both predicted."""

    change: RunChange
    cycles: int
    before: int

    @property
    def saved(self) -> int:
        """Cycles that the change saves; less than 0 if it costs some."""
        return self.before - self.cycles


def best_change(cost: CycleCost, tried: Sequence[TriedChange]) -> TriedChange | None:
    """Return what saves most of those changes that may help against a cost; None if none of them was tried."""
    mine = [each for each in tried if each.change.key in _HELPFUL.get(cost.cause, ())]
    return max(mine, key=lambda each: each.saved, default=None)


def tried_changes(source: ModelSource, design: Design, options: Options, report: Report, steps: Steps, *,
                  outputs_only: bool = False, commands: int = 0) -> tuple[TriedChange, ...]:
    """Predict the run of ``report`` with the changes that may help against its largest costs, one at a time.

    Parameters
    ----------
    source, design, options
        What was run.
    report : Report
    steps : Steps
    outputs_only : bool
        Whether the run stored only the tensors that the network needs.
    commands : int
        Commands of the program. Nothing is tried if they are so many that it would take minutes.
    """
    before = report.cycles if report.engine in ("fast", "cycles") else report.predicted_cycles
    costs = largest_costs(report)[:MOST_COSTS]
    changes = list(_changes(costs, design.machine, outputs_only=outputs_only))[:_MOST_CHANGES]
    if before is None or commands > _MOST_COMMANDS or not changes:
        return ()
    network = PredictedNetwork(source, options, outputs_only=outputs_only)
    found = []
    for change in changes:
        network.outputs_only = outputs_only or change.key == OUTPUTS_ONLY
        with steps.step(f"Predicting {network.name} with {change.option}"):
            try:
                changed = replace(design, machine=change.machine(design.machine))
                found.append(TriedChange(change, network.predict(changed).cycles, before))
            except Error:       # a machine for which this network cannot be compiled is no advice
                continue
    return tuple(found)


def _changes(costs: Sequence[CycleCost], machine: Machine, *, outputs_only: bool) -> Iterator[RunChange]:
    """Yield the changes that may help: the likeliest against each cost, the largest cost first, then the others."""
    wanted = [_HELPFUL.get(cost.cause, ()) for cost in costs if cost.share >= LEAST_SHARE]
    turns = max(map(len, wanted), default=0)
    keys = dict.fromkeys(each[turn] for turn in range(turns) for each in wanted if turn < len(each))
    for key in keys:
        change = RunChange(key, 1 if key == OUTPUTS_ONLY else 2 * getattr(machine, key))
        try:
            change.machine(machine)
        except ValueError:
            continue
        if key != OUTPUTS_ONLY or not outputs_only:
            yield change
