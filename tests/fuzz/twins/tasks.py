"""One twin to make and to judge: workers import this, since they cannot import a package's ``__main__``."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.fuzz.twins.judge import Finding, judge, smallest
from tests.fuzz.twins.rewriting import REWRITINGS, Step, drawn
from tests.fuzz.twins.sources import Source, draw_source

__all__ = ["Task", "task_of", "tried"]


@dataclass(frozen=True)
class Task:
    """One twin: its plain model, and what is done to it."""

    source: Source
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"{self.source!r} by {', '.join(map(str, self.steps))}"


def task_of(seed: int, number: int, names: Sequence[str] = (), source: Source = "") -> Task:
    """Return twin ``number`` of ``seed``, of the rewritings ``names`` alone, or of one plain model."""
    rng = random.Random(seed * 1_000_003 + number)
    chosen = source or draw_source(rng)
    return Task(chosen, drawn(rng, names or tuple(REWRITINGS)))


def tried(task: Task) -> tuple[Task, Finding, tuple[Step, ...]]:
    """Judge a twin, and leave out what is not needed for its failing; return it, and what was done to it."""
    finding, applied = judge(task.source, task.steps)
    if finding.fails and applied:
        steps = smallest(task.source, applied, finding.outcome)
        return Task(task.source, steps), judge(task.source, steps)[0], applied
    return task, finding, applied
