"""The progress of an exploration: designs done, time left, verdicts, and the best of each objective so far."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from tilewright.bench.exploration.design_cost import Verdict
from tilewright.bench.exploration.exploration_study import FinishedTrial
from tilewright.tools.fitted_table import FittedTable
from tilewright.tools.progress import EVERY

__all__ = ["ExplorationProgress", "front_table", "measuring_sentence", "start_sentence", "verified_table"]


class ExplorationProgress:
    """Shows trials as they are finished.

    Parameters
    ----------
    objectives : sequence of str
    total : int
        Trials that there shall be.
    done : sequence of FinishedTrial
        Those that there are.
    """

    def __init__(self, objectives: Sequence[str], total: int, done: Sequence[FinishedTrial]) -> None:
        self._best: dict[str, float] = dict.fromkeys(objectives, float("inf"))
        self._verdicts: Counter[str] = Counter()
        self._console = Console(stderr=True)
        self._total, self._done = total, 0
        self._began = self._shown = time.monotonic()
        self._before = len(done)
        for trial in done:
            self._take(trial)
        columns = (SpinnerColumn(), TextColumn("Exploring"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
                   TextColumn("left:"), TimeRemainingColumn(elapsed_when_finished=False),
                   TextColumn("{task.fields[best]}"))
        self._bar = Progress(*columns, console=self._console, transient=True, disable=not self._console.is_terminal)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the bar until the block ends, and then a line."""
        with self._bar:
            self._task = self._bar.add_task("", total=self._total, completed=self._done, best=self.text)
            yield
        self._say()

    def finished(self, trial: FinishedTrial) -> None:
        """Show a trial that has been finished."""
        self._take(trial)
        self._bar.update(self._task, completed=self._done, best=self.text)
        if not self._console.is_terminal and time.monotonic() - self._shown >= EVERY:
            self._say()

    @property
    def text(self) -> str:
        """The best of each objective, and how many designs ended how."""
        best = ", ".join(f"{name} {value:.6g}" for name, value in self._best.items())
        counts = ", ".join(f"{count} {verdict}" for verdict, count in self._verdicts.items())
        return f"best so far: {best}; {counts}"

    def _take(self, trial: FinishedTrial) -> None:
        self._done += 1
        self._verdicts[str(trial.outcome.verdict)] += 1
        if trial.outcome.verdict is Verdict.good:
            for name in self._best:
                self._best[name] = min(self._best[name], trial.outcome.measures[name])

    def _say(self) -> None:
        self._shown = time.monotonic()
        spent, fresh = self._shown - self._began, self._done - self._before
        left = spent / fresh * (self._total - self._done) if fresh else 0.0
        self._console.print(f"{self._done} of {self._total} designs in {spent:.0f} s, {left:.0f} s left; {self.text}",
                            highlight=False, soft_wrap=True)


def front_table(content: dict[str, Any], objectives: Sequence[str]) -> Table:
    """Return the front as a table, with what was measured beside what was predicted."""
    table = FittedTable(title=f"Front of {content['trials']} designs")
    table.column("design")
    for name in objectives:
        table.column(name, number=True)
    for turn, head in ((1, "machine"), (3, "cycles in RTL"), (2, "area measured")):
        table.column(head, goes=turn)
    for point in content["points"]:
        machine = point["design"]["machine"]
        found = point["verified"] or {}
        shape = f"{machine['lanes']} lanes, {machine['clusters']} clusters, bus {machine['bus_bytes']}"
        table.add_row(point["name"], *(f"{point['measures'][name]:,.4g}" for name in objectives), shape,
                      _measured(found.get("cycles"), found.get("rtl_error")),
                      _measured((found.get("area") or {}).get("area"), found.get("synthesis_error")))
    return table


def start_sentence(content: dict[str, Any], objectives: Sequence[str]) -> str:
    """Return how many designs are at least as good as the one that the space starts from."""
    start = content["start"]
    if not start["measures"]:
        return f"{start['name']}, where the space starts, cannot be compared: {start['reason']}"
    costs = ", ".join(f"{name} {start['measures'][name]:,.4g}" for name in objectives)
    count = len(start["as_good"])
    verb = "is" if count == 1 else "are"
    return (f"{count} of {content['trials']} designs {verb} at least as good as {start['name']} in every objective "
            f"({costs}{''.join(f'; beyond {limit}' for limit in start['beyond'])})")


def measuring_sentence(count: int, folder: Path) -> str:
    """Return what follows the front: how many designs are measured, and what an interruption leaves."""
    return (f"Measuring {count} of them in RTL and by synthesis, which takes some minutes a design. The front is in "
            f"{folder} already: Ctrl-C keeps it, and the same command goes on from there")


def verified_table(content: dict[str, Any]) -> Table | None:
    """Return what was predicted and what was measured of each verified design; None if nothing was measured."""
    rows = [(point["name"], name, pair) for point in content["points"] if (found := point["verified"])
            for name, pair in _pairs(found)]
    if not rows:
        return None
    table = FittedTable(title="Predicted and measured")
    table.column("design")
    table.column("measure")
    for head in ("predicted", "measured", "error"):
        table.column(head, number=True)
    for design, name, pair in rows:
        table.add_row(design, name, f"{pair['predicted']:,.6g}", f"{pair['measured']:,.6g}", f"{pair['error']:+.2%}")
    return table


def _pairs(found: dict[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield name and pair of each measure of a design that was measured."""
    if "cycles" in found:
        yield f"cycles of {found['network']}", found["cycles"]
    yield from found.get("area", {}).items()


def _measured(pair: dict[str, float] | None, error: str | None) -> str:
    if pair is None:
        return error or "–"
    return f"{pair['measured']:,.6g} ({pair['error']:+.2%})"
