"""Workers on this machine: processes that live as long as the exploration and evaluate one design at a time."""

import multiprocessing
import os
import threading
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import Protocol

from tilewright.bench.exploration.design_cost import DesignOutcome, Evaluator
from tilewright.runtime.design.design import Design

__all__ = ["LocalWorkers", "Workers"]


class Workers(Protocol):
    """Whoever evaluates designs.

    Attributes
    ----------
    lost : tuple of type
        Exceptions of a future that say that its worker has ended, not that the design is wrong.
    """

    lost: tuple[type[BaseException], ...]

    @property
    def width(self) -> int:
        """Number of designs that are evaluated at a time; may change."""
        ...

    def submit(self, design: Design) -> "Future[DesignOutcome]":
        """Let a design be evaluated; at most ``width`` at a time."""
        ...

    def close(self) -> None:
        """End the workers, whatever they do."""
        ...


class LocalWorkers:
    """Processes of this machine; one alone is a thread of this process, and costs no start.

    Every process has a pool of its own, so that one that dies takes only its own design with it.
    """

    lost: tuple[type[BaseException], ...] = (BrokenProcessPool,)

    def __init__(self, evaluator: Evaluator, jobs: int) -> None:
        self._evaluator = evaluator
        self._pools: list[ProcessPoolExecutor | ThreadPoolExecutor] = [self._pool(jobs) for _ in range(jobs)]
        self._tasks: list[Future[DesignOutcome] | None] = [None] * jobs

    @property
    def width(self) -> int:
        """Number of designs that are evaluated at a time."""
        return len(self._pools)

    def submit(self, design: Design) -> "Future[DesignOutcome]":
        """Let a design be evaluated by an idle process; a process that has died is started again."""
        place = next(place for place, task in enumerate(self._tasks) if task is None or task.done())
        if isinstance(self._pools[place], ThreadPoolExecutor):
            future = self._pools[place].submit(self._evaluator.evaluate, design)
        else:
            try:
                future = self._pools[place].submit(_evaluate, design)
            except BrokenProcessPool:
                self._pools[place] = self._pool(self.width)
                future = self._pools[place].submit(_evaluate, design)
        self._tasks[place] = future
        return future

    def close(self) -> None:
        """End the processes, whatever they do."""
        for pool in self._pools:
            if isinstance(pool, ProcessPoolExecutor):
                for process in list((pool._processes or {}).values()):
                    process.kill()
            pool.shutdown(wait=isinstance(pool, ProcessPoolExecutor), cancel_futures=True)

    def _pool(self, jobs: int) -> ProcessPoolExecutor | ThreadPoolExecutor:
        if jobs == 1:
            return ThreadPoolExecutor(1)
        # Not forked: this process has threads.
        return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _start, (self._evaluator,))


_evaluator: Evaluator | None = None
"""Of a worker's process."""


def _start(evaluator: Evaluator) -> None:
    """Prepare a worker's process: its networks, and its end when the exploration's process ends."""
    global _evaluator
    _evaluator = evaluator
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _evaluate(design: Design) -> DesignOutcome:
    """Return what the design costs, in a worker's process."""
    if _evaluator is None:
        raise RuntimeError("A worker's process must be prepared before it evaluates")
    return _evaluator.evaluate(design)
