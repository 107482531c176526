"""The results of an exploration as files: a table of all trials, the front, and a design file for each point."""

import csv
import io
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright._version import __version__
from tilewright.bench.exploration.area_prediction import AreaTarget
from tilewright.bench.exploration.design_cost import Verdict, measures_of
from tilewright.bench.exploration.exploration_study import ExplorationStudy, FinishedTrial, StudySetup
from tilewright.bench.exploration.space import MACHINE_KEYS, MEMORY_KEYS, Choice, Value
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_text import design_text
from tilewright.tools.files import write_file

__all__ = ["DESIGNS", "FRONT", "TRIALS", "RunningTable", "as_good_as", "design_of_trial", "front_json", "parameters_of",
           "point_name", "trials_csv", "write_results"]

TRIALS, FRONT, DESIGNS = "trials.csv", "front.json", "designs"
"""Names in an exploration's folder."""

_SECONDS = 10.0
"""Between two tables of an exploration that runs."""


def point_name(setup: StudySetup, number: int) -> str:
    """Return the name of the design of a trial."""
    return f"{setup.space.name}-{number:04d}"


def design_of_trial(setup: StudySetup, trial: FinishedTrial) -> Design:
    """Return the design of a trial that has one."""
    return setup.space.design(trial.choice, point_name(setup, trial.number))


def parameters_of(setup: StudySetup, choice: Choice) -> dict[str, Value | None]:
    """Return the parameters of a choice's design; of one that is no design, what was chosen, and None for the rest."""
    keys = (*MACHINE_KEYS, *MEMORY_KEYS, "mhz")
    try:
        design = setup.space.design(choice)
    except ValueError:
        return {key: choice.get(key) for key in keys}
    mhz = design.pricing.clock_mhz or setup.space.mhz
    found = {**asdict(design.machine), **design.timing.to_json(), "mhz": mhz}
    return {key: found.get(key) for key in keys}


def trials_csv(setup: StudySetup, trials: Sequence[FinishedTrial], front: Sequence[FinishedTrial]) -> str:
    """Return all trials as a table: verdict and reason, parameters, measures, and whether it is on the front."""
    measures = measures_of(tuple(setup.networks), AreaTarget(setup.target))
    best = {each.number for each in front}
    rows = []
    for trial in trials:
        found = trial.outcome.measures
        rows.append({"trial": trial.number, "verdict": str(trial.outcome.verdict), "front": int(trial.number in best),
                     **parameters_of(setup, trial.choice),
                     **{name: f"{found[name]:.10g}" if name in found else "" for name in measures},
                     "reason": trial.outcome.reason})
    out = io.StringIO()
    heads = ["trial", "verdict", "front", *MACHINE_KEYS, *MEMORY_KEYS, "mhz", *measures,
             "reason"]
    writer = csv.DictWriter(out, heads, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def as_good_as(setup: StudySetup, trials: Sequence[FinishedTrial], measures: Mapping[str, float]) -> list[int]:
    """Return the numbers of the trials that are within the limits, and in no objective worse than ``measures``."""
    return [trial.number for trial in trials if trial.outcome.verdict is Verdict.good
            and all(trial.outcome.measures[name] <= measures[name] for name in setup.objectives)]


class RunningTable:
    """The table of trials, rewritten during an exploration, so that a killed one leaves its results.

    Parameters
    ----------
    folder : Path
    study : ExplorationStudy
    """

    def __init__(self, folder: Path, study: ExplorationStudy) -> None:
        self._path, self._study = folder / TRIALS, study
        self._written = float("-inf")

    def finished(self) -> None:
        """Write the table unless it has been written some seconds ago."""
        if time.monotonic() - self._written < _SECONDS:
            return
        with self._study.turn("writing"):
            write_file(self._path, trials_csv(self._study.setup, self._study.finished(), self._study.front()).encode())
        self._written = time.monotonic()


def front_json(setup: StudySetup, trials: Sequence[FinishedTrial], front: Sequence[FinishedTrial],
               verified: Mapping[int, dict[str, Any]], command: str) -> dict[str, Any]:
    """Return the front as JSON's types: the exploration, how many trials ended how, and each point with its design."""
    counts: dict[str, int] = {}
    for trial in trials:
        verdict = str(trial.outcome.verdict)
        counts[verdict] = counts.get(verdict, 0) + 1
    return {
        "version": __version__, "command": command, "exploration": setup.to_json(), "trials": len(trials),
        "verdicts": counts,
        "points": [{"name": point_name(setup, each.number), "trial": each.number,
                    "design": design_of_trial(setup, each).to_json(), "measures": each.outcome.measures,
                    "verified": verified.get(each.number)} for each in front]}


def write_results(folder: Path, setup: StudySetup, trials: Sequence[FinishedTrial], content: dict[str, Any],
                  front: Sequence[FinishedTrial]) -> None:
    """Write the table, the front and its designs into an exploration's folder; designs of an older front go.

    Raises
    ------
    InputError
        If a file cannot be written.
    """
    designs = folder / DESIGNS
    designs.mkdir(exist_ok=True)
    write_file(folder / TRIALS, trials_csv(setup, trials, front).encode())
    write_file(folder / FRONT, (json.dumps(content, indent=2) + "\n").encode())
    kept = set()
    for trial in front:
        design = design_of_trial(setup, trial)
        measures = ", ".join(f"{name} {trial.outcome.measures[name]:.6g}" for name in setup.objectives)
        path = designs / f"{design.machine.name}.toml"
        text = design_text(design, f"Trial {trial.number} of the exploration of {setup.space.name}: {measures}.")
        write_file(path, text.encode())
        kept.add(path)
    for path in set(designs.glob(f"{setup.space.name}-*.toml")) - kept:
        path.unlink()
