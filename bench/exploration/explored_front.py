"""The front of an exploration: measured if asked for, written into the exploration's folder as files and as a page."""

from pathlib import Path
from typing import Any

from tilewright.bench.exploration.design_cost import Evaluator
from tilewright.bench.exploration.exploration_results import front_json, write_results
from tilewright.bench.exploration.exploration_study import ExplorationStudy
from tilewright.bench.exploration.explore_page import explore_page
from tilewright.bench.exploration.verification import verify
from tilewright.errors import InputError
from tilewright.tools.files import write_file
from tilewright.tools.progress import Steps

__all__ = ["require_front", "write_front"]

_PAGE = "explore.html"


def write_front(study: ExplorationStudy, evaluator: Evaluator, folder: Path, most: int, command: str,
                steps: Steps) -> dict[str, Any]:
    """Measure up to ``most`` points of the front, write all results, and return them as JSON's types.

    ``command`` is what the results name as theirs. The files are written before anything is measured, too.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    trials, front, importances = study.finished(), study.front(), study.importances()

    def write(verified: dict[int, dict[str, Any]]) -> dict[str, Any]:
        content = front_json(study.setup, trials, front, verified, command)
        with study.turn("writing"):
            write_results(folder, study.setup, trials, content, front)
            write_file(folder / _PAGE, explore_page(study.setup, trials, content, importances).encode())
        return content

    content = write({})
    if most and front:
        content = write(verify(folder, study, evaluator.networks, front, most, steps))
    return content


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
