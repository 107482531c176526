"""An exploration: trials are requested, evaluated by workers and recorded, until there are as many as wanted."""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, wait

from tilewright.bench.exploration.design_cost import DesignOutcome, Verdict
from tilewright.bench.exploration.exploration_study import AskedTrial, ExplorationStudy, FinishedTrial
from tilewright.bench.exploration.local_workers import Workers

__all__ = ["TRIES", "explore"]

TRIES = 3
"""Workers that a design may outlast before it is given up: it may be the design that ends them."""

_SECONDS = 1.0
"""Between two looks at what other processes do."""

Show = Callable[[FinishedTrial], None]
"""Shows a trial that this process has finished."""


def explore(study: ExplorationStudy, workers: Workers, trials: int, show: Show) -> None:
    """Evaluate designs until the study has ``trials``, or every design of its space has been tried.

    Other processes may do the same in the same folder. If they have trials under way at the end, they are waited for,
    and if they are gone, their trials are done here.
    """
    under_way: dict[Future[DesignOutcome], tuple[AskedTrial, int]] = {}
    while True:
        while len(under_way) < workers.width and (asked := study.next(trials)) is not None:
            try:
                design = study.setup.space.design(asked.choice, f"trial-{asked.number}")
            except ValueError as error:
                show(study.record(asked, DesignOutcome(Verdict.impossible, {}, str(error))))
                continue
            under_way[workers.submit(design)] = asked, 1
        if not under_way:
            if not study.waits:
                return
            time.sleep(_SECONDS)
            continue
        for future in wait(under_way, _SECONDS, FIRST_COMPLETED).done:
            asked, tries = under_way.pop(future)
            lost = future.exception()
            if isinstance(lost, workers.lost) and tries < TRIES:
                design = study.setup.space.design(asked.choice, f"trial-{asked.number}")
                under_way[workers.submit(design)] = asked, tries + 1
                continue
            outcome = future.result() if lost is None else DesignOutcome(
                Verdict.failed, {}, f"{type(lost).__name__}, {tries} times: {lost}"[:500])
            show(study.record(asked, outcome))
