"""The front of an exploration: measured on request, and written into the exploration's folder as files and a page."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tilewright.bench.exploration.design_cost import Evaluator
from tilewright.bench.exploration.exploration_results import as_good_as, front_json, write_results
from tilewright.bench.exploration.exploration_study import ExplorationStudy, FinishedTrial
from tilewright.bench.exploration.explore_page import explore_page
from tilewright.bench.exploration.space import design_key
from tilewright.bench.exploration.verification import verify
from tilewright.errors import InputError
from tilewright.isa.machine import DEFAULT_MACHINE
from tilewright.runtime.design.design_flags import design_of
from tilewright.tools.files import write_file
from tilewright.tools.progress import Steps

__all__ = ["measure_front", "require_front", "write_front"]

_PAGE = "explore.html"


def write_front(study: ExplorationStudy, evaluator: Evaluator, folder: Path, command: str,
                verified: Mapping[int, dict[str, Any]] = MappingProxyType({})) -> dict[str, Any]:
    """Write all results into ``folder``, and return them as JSON's types.

    ``command`` is what the results name as theirs, and ``verified`` by trial what was measured of it; ``start`` in the
    results is the space's own design, such as a preset, and which trials are at least as good in every objective;
    ``references`` are other designs to compare with.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    trials, front = study.finished(), study.front()
    start = _start_json(study, evaluator, trials)
    content = front_json(study.setup, trials, front, verified, command) | {
        "start": start, "references": _references_json(study, evaluator)}
    ranges = study.importance_ranges()
    with study.turn("writing"):
        write_results(folder, study.setup, trials, content, front)
        write_file(folder / _PAGE, explore_page(study.setup, trials, content, ranges).encode())
    return content


def measure_front(study: ExplorationStudy, evaluator: Evaluator, folder: Path, most: int, command: str,
                  steps: Steps) -> dict[str, Any]:
    """Measure up to ``most`` points of the front, which takes minutes, and do as `write_front` with what was found."""
    found = verify(folder, study, evaluator.networks, study.front(), most, steps)
    return write_front(study, evaluator, folder, command, found)


def _start_json(study: ExplorationStudy, evaluator: Evaluator, trials: Sequence[FinishedTrial]) -> dict[str, Any]:
    """Return the design that the space starts from, what it costs, and the trials that are at least as good."""
    base = study.setup.space.base
    outcome = evaluator.evaluate(base)
    better = as_good_as(study.setup, trials, outcome.measures) if outcome.measures else []
    beyond = [str(limit) for limit in study.setup.limits if outcome.measures and limit.violation(outcome.measures) > 0]
    return {"name": base.machine.name, "measures": outcome.measures, "reason": outcome.reason, "beyond": beyond,
            "as_good": better}


def _references_json(study: ExplorationStudy, evaluator: Evaluator) -> list[dict[str, Any]]:
    """Return the default machine and what it costs, if the space starts from another."""
    base, own = design_of(DEFAULT_MACHINE), study.setup.space.base
    if design_key(base) == design_key(own):
        return []
    return [{"name": base.machine.name, "measures": evaluator.evaluate(replace(own, machine=base.machine)).measures}]


def require_front(study: ExplorationStudy) -> None:
    """Refuse an exploration that has found nothing.

    Raises
    ------
    InputError
        If no trial is within the limits.
    """
    if not study.front():
        trials = study.finished()
        reasons = {trial.outcome.reason for trial in trials}
        raise InputError(f"Exploration found no design within its limits in {len(trials)} trials: "
                         f"{next(iter(sorted(reasons)), 'none was tried')}")
