"""Twins of plain models, many of them: ``python -m tests.fuzz.twins --count 2000 --jobs 2 --seed 0``.

A twin is a plain model rewritten in ways that change no number, several at a time. Its outputs must be the plain
model's, bit by bit, and its cycles at most 1.05 of them. One that fails is written to a folder, with the fewest
rewritings that make it fail. Exit status 1 if there was one. Twin number n of a seed is always the same.
"""

import argparse
import itertools
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.twins.judge import MOST, Finding, write_twin
from tests.fuzz.twins.rewriting import REWRITINGS, Step, twin_of
from tests.fuzz.twins.sources import plain_model
from tests.fuzz.twins.tasks import Task, task_of, tried

__all__ = ["Total", "main"]

OUT = Path("out/twins")


@dataclass
class Total:
    """What many twins have shown: outcomes, rewritings that found a place, those of failing twins, sentences."""

    outcomes: Counter[str] = field(default_factory=Counter)
    applied: Counter[str] = field(default_factory=Counter)
    causes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    highest: float = 0.0

    def report(self, seconds: float) -> str:
        """Return it line by line."""
        count = self.outcomes.total()
        lines = [f"{count:,} twins in {seconds:,.0f} s: " + ", ".join(
            f"{number:,} {name}" for name, number in self.outcomes.most_common())]
        lines.append("applied: " + ", ".join(f"{name} {number:,}" for name, number in self.applied.most_common()))
        lines += [f"fails {number} times: {name}" for name, number in self.causes.most_common()]
        lines.append(f"{len(self.failures)} twins fail; the highest factor of the others is {self.highest:.3f}, "
                     f"at most {MOST}")
        return "\n".join(lines)


def verdicts(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Finding, tuple[Step, ...]]]:
    """Yield what came of each of the twins, in order."""
    if jobs == 1:
        yield from map(tried, tasks)
        return
    with multiprocessing.get_context("forkserver").Pool(jobs) as pool:
        yield from pool.imap(tried, tasks, chunksize=4)


def save(task: Task, number: int) -> Path:
    """Write a twin that fails."""
    OUT.mkdir(parents=True, exist_ok=True)
    model = plain_model(task.source)
    assert model is not None
    return write_twin(twin_of(model, task.steps), OUT / f"twin{number}.onnx")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.twins", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="number of the first twin")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rewriting", action="append", choices=list(REWRITINGS), help="this one alone; or several")
    parser.add_argument("--without", action="append", choices=list(REWRITINGS), default=[], help="all but this one")
    parser.add_argument("--source", default="", help="twins of this plain model alone: a built-in one, a file of the "
                                                     "corpus, or form/number")
    given = parser.parse_args(arguments)
    names = [name for name in given.rewriting or REWRITINGS if name not in given.without]
    numbers = range(given.first, given.first + given.count)
    tasks = [task_of(given.seed, number, names, given.source) for number in numbers]
    total, start, number = Total(), time.monotonic(), itertools.count()
    try:
        for task, finding, applied in verdicts(tasks, given.jobs):
            total.outcomes[finding.outcome] += 1
            total.applied.update(step.name for step in applied)
            if finding.fails:
                total.causes[f"{finding.outcome}: {' + '.join(step.name for step in task.steps)}"] += 1
                total.failures.append(f"{finding.outcome.upper()} {save(task, next(number))}: {task}: {finding.text}")
                print(total.failures[-1], flush=True)
            else:
                total.highest = max(total.highest, finding.factor)
    except KeyboardInterrupt:
        print("stopped; so far:", file=sys.stderr)
    print(total.report(time.monotonic() - start))
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
