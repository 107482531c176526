"""The rows of a page that say what a run's cycles are spent on, and what would save some of them."""

from collections.abc import Sequence
from typing import Any

from tilewright.runtime.advice.largest_costs import CORE, MOST_COSTS, CycleCost
from tilewright.runtime.advice.machine_changes import LEAST_SHARE, OUTPUTS_ONLY, RunChange, TriedChange, best_change

__all__ = ["cost_rows"]

_CAUSES = {
    "mac_issue": "The multipliers work.",
    "mac_setup": "The array takes its next command.",
    "mac_wait_activations": "The array waits for activations from main memory.",
    "mac_wait_weights": "The array waits for weights from main memory.",
    "mac_wait_post": "The array waits for post-processing, which is behind.",
    "mac_idle_post": "The array has nothing left to do while results are finished and stored.",
    "mac_idle_load": "The array has nothing to do yet while data are loaded.",
    "mac_idle_host": "The array has no command: the host core sends the next.",
}

_CHANGES = {
    "lanes": "Take {} lanes of multipliers for {}",
    "post_lanes": "Take {} lanes of post-processing for {}",
    "bus_bytes": "Take a bus of {} bytes for {}",
    "activation_bytes": "Take an activation buffer of {} bytes for {}",
    "weight_bytes": "Take weight memories of {} bytes for {}",
    "queue_depth": "Take queues of {} commands for {}",
}


def cost_rows(costs: Sequence[CycleCost], tried: Sequence[TriedChange], machine: str) -> list[dict[str, Any]]:
    """Return the largest of ``costs`` as rows: cause, cycles, layers, change, and what that saves.

    Parameters
    ----------
    costs : sequence of CycleCost
        As `largest_costs` returns them.
    tried : sequence of TriedChange
        As `tried_changes` returns them.
    machine : str
        What stood behind ``--machine``; empty where no run can be given another.

    Returns
    -------
    list of dict
        ``saved`` counts cycles of the whole run; with ``most`` they are an upper limit, and otherwise predicted.
        ``again`` marks a change that a row above has.
    """
    rows = [_row(cost, tried, machine) for cost in costs[:MOST_COSTS]]
    seen: set[str] = set()
    for row in rows:
        row["again"] = bool(row["option"]) and row["option"] in seen
        seen.add(row["option"])
    return rows


def _row(cost: CycleCost, tried: Sequence[TriedChange], machine: str) -> dict[str, Any]:
    row = {"unit": CORE if cost.cause == CORE else cost.cause, "cycles": cost.cycles, "share": cost.share,
           "layers": [list(part) for part in cost.layers], "option": "", "saved": None, "most": False}
    if cost.core is not None:
        return row | {"cause": f"The host core computes {cost.core.operator}: {cost.core.reason}.",
                      "change": f"{cost.core.way_out[:1].upper()}{cost.core.way_out[1:]}.",
                      "saved": cost.cycles, "most": True}
    row["cause"] = _CAUSES[cost.cause]
    best = best_change(cost, tried)
    if best is None:
        return row | {"change": "No change was tried." if cost.share >= LEAST_SHARE else "It is too little to matter."}
    words, option = _words(best.change, machine)
    if best.saved <= 0:
        return row | {"change": f"{words} does not help: the run then takes {-best.saved:,} cycles more."}
    return row | {"change": f"{words}.", "option": option, "saved": best.saved}


def _words(change: RunChange, machine: str) -> tuple[str, str]:
    """Return a change in words, and the option that makes it."""
    if change.key == OUTPUTS_ONLY:
        return "Store no tensor only to compare it, as a compiled model does", change.option
    words = _CHANGES[change.key].format(f"{change.value:,}", f"{change.value // 2:,}")
    return words, f"--machine {machine},{change.option}" if machine else ""
