"""Progress for a waiting user, on standard error: a bar on a terminal, elsewhere a line every ten seconds."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import accumulate

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["EVERY", "FIRST_LINE", "WORTH_MENTIONING", "Cycles", "Silence", "Steps"]

WORTH_MENTIONING = 2.0
"""Seconds from which a finished step leaves a line."""

FIRST_LINE, EVERY = 5.0, 10.0
"""Seconds from which a step that is under way tells where it is, and between two such lines: without a terminal."""

_Detail = Callable[[str], None]
"""Shows something new about the step that is under way."""

Cycles = Callable[[int, int | None], None]
"""Shows how many cycles a simulation has done; what the second number says is not shown. See
`sim.rtl_engine.Progress`."""


class Steps:
    """Shows steps on a console: a spinner on a terminal, elsewhere lines, and at the end one of each that took long."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)

    @contextmanager
    def step(self, text: str) -> Iterator[_Detail]:
        """Show ``text`` until the block ends; the value is called with details."""
        columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
        with self._progress(text, columns) as bar:
            task = bar.add_task(text, total=None)
            yield lambda detail: bar.update(task, description=f"{text}: {detail}")

    @contextmanager
    def simulation(self, text: str, layers: Sequence[tuple[str, int]]) -> Iterator[Cycles]:
        """Show a simulation until the block ends: layer, cycles, cycles per second, and the time left.

        ``layers`` are names and predicted cycles, in order. They tell the layer and the time left.
        """
        ends = list(accumulate(cycles for _, cycles in layers))
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rate]}"),
                   TimeElapsedColumn(), TextColumn("left:"), TimeRemainingColumn())
        start = time.monotonic()
        with self._progress(text, columns) as bar:
            task = bar.add_task(text, total=ends[-1], rate="")

            def show(cycles: int, mark: int | None) -> None:
                layer = layers[min(bisect_right(ends, cycles), len(layers) - 1)][0]
                rate = cycles / max(time.monotonic() - start, 1e-3)
                bar.update(task, description=f"{text}: {layer}", completed=min(cycles, ends[-1]),
                           rate=f"{cycles:,} cycles, {rate:,.0f} per second")

            yield show

    @contextmanager
    def count(self, text: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a bar until the block ends; each call of the value is one of ``total`` done."""
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                   TimeElapsedColumn())
        with self._progress(text, columns) as bar:
            task = bar.add_task(text, total=total)
            yield lambda: bar.advance(task)

    @contextmanager
    def _progress(self, text: str, columns: Sequence[ProgressColumn]) -> Iterator[Progress]:
        """Show columns on a terminal until the block ends, and then a line if it took long."""
        start = time.monotonic()
        plain = not self._console.is_terminal
        with Progress(*columns, console=self._console, transient=True, disable=plain) as bar:
            with self._lines(bar, start) if plain else nullcontext():
                yield bar
        if (seconds := time.monotonic() - start) >= WORTH_MENTIONING:
            self._console.print(f"{text}: {seconds:.1f} s", highlight=False, soft_wrap=True)


    @contextmanager
    def _lines(self, bar: Progress, start: float) -> Iterator[None]:
        """Print where the work is, after ``FIRST_LINE`` seconds and then every ``EVERY``, until the block ends."""
        ended = threading.Event()

        def tell() -> None:
            wait = max(FIRST_LINE, WORTH_MENTIONING)
            while wait < threading.TIMEOUT_MAX and not ended.wait(wait):
                for task in bar.tasks:
                    self._console.print(_line(task, time.monotonic() - start), highlight=False, markup=False,
                                        soft_wrap=True)
                wait = EVERY

        thread = threading.Thread(target=tell, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _line(task: Task, seconds: float) -> str:
    """Return where a task is: its text, how much of it is done, and since when."""
    parts = [str(task.fields["rate"])] if task.fields.get("rate") else []
    if task.total:
        parts.append(f"{task.completed:,.0f} of {task.total:,.0f}" if not parts else f"{task.percentage:.0f} %")
        if task.completed:
            parts.append(f"about {seconds * (task.total / task.completed - 1):.0f} s left")
    return f"{task.description} … {', '.join([*parts, f'{seconds:.0f} s so far'])}"


class Silence(Steps):
    """Shows nothing, as befits a library."""

    @contextmanager
    def step(self, text: str) -> Iterator[_Detail]:
        """Do nothing."""
        yield lambda detail: None

    @contextmanager
    def simulation(self, text: str, layers: Sequence[tuple[str, int]]) -> Iterator[Cycles]:
        """Do nothing."""
        yield lambda cycles, mark: None

    @contextmanager
    def count(self, text: str, total: int) -> Iterator[Callable[[], None]]:
        """Do nothing."""
        yield lambda: None
