"""Verify the front in hardware: run its designs in RTL on the smallest network, and synthesise them, side by side."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright.bench.exploration.area_prediction import AreaTarget
from tilewright.bench.exploration.design_cost import WeightedNetwork
from tilewright.bench.exploration.exploration_results import design_of_trial, point_name
from tilewright.bench.exploration.exploration_study import ExplorationStudy, FinishedTrial, StudySetup
from tilewright.errors import Error
from tilewright.hardware.synthesis.flow import synthesise
from tilewright.hardware.synthesis.sources import machine_design
from tilewright.hardware.synthesis.synthesis_report import SynthesisRequest
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.design.design import Design
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.runtime.run_options import RunOptions
from tilewright.tools.files import write_file
from tilewright.tools.progress import Silence, Steps

__all__ = ["VERIFIED", "chosen_points", "verify"]

VERIFIED = "verified"
"""The folder of what was measured, in an exploration's folder."""


def chosen_points(front: Sequence[FinishedTrial], most: int) -> list[FinishedTrial]:
    """Return at most ``most`` points of a front, from its first to its last at equal distances."""
    if most >= len(front):
        return list(front)
    if most == 1:
        return [front[0]]
    places = sorted({round(place * (len(front) - 1) / (most - 1)) for place in range(most)}) if most else []
    return [front[place] for place in places]


def verify(folder: Path, study: ExplorationStudy, networks: Sequence[WeightedNetwork], front: Sequence[FinishedTrial],
           most: int, steps: Steps) -> dict[int, dict[str, Any]]:
    """Measure at most ``most`` points of the front; return by trial what was predicted and what was measured.

    What was measured once is kept in the folder. Processes of one exploration measure in turns. As many simulators and
    syntheses are under way as there are processors.
    """
    kept = folder / VERIFIED
    kept.mkdir(exist_ok=True)
    setup, found = study.setup, {}

    def path(trial: FinishedTrial) -> Path:
        return kept / f"{point_name(setup, trial.number)}.json"

    with study.turn("verifying"):
        missing = [trial for trial in chosen_points(front, most) if not path(trial).exists()]
        if missing:
            with steps.count("Measuring designs in RTL and by synthesis", len(missing) * len(_PARTS)) as one_done:
                for trial, content in _measured(setup, networks, missing, one_done):
                    write_file(path(trial), (json.dumps(content, indent=2) + "\n").encode())
        for trial in front:
            if path(trial).exists():
                found[trial.number] = json.loads(path(trial).read_text(encoding="utf-8"))
    return found


def _measured(setup: StudySetup, networks: Sequence[WeightedNetwork], trials: Sequence[FinishedTrial],
              one_done: Callable[[], None]) -> Iterator[tuple[FinishedTrial, dict[str, Any]]]:
    """Yield of each design what was predicted and measured, each with its relative error; or why it was not."""
    pool = ThreadPoolExecutor(os.cpu_count() or 1)  # what takes time are processes of other programs
    try:
        begun = []
        for trial in trials:
            task = _Task(setup, networks, trial)
            begun.append((task, [pool.submit(part, task) for part in _PARTS]))
            for future in begun[-1][1]:
                future.add_done_callback(lambda _: one_done())
        for task, futures in begun:
            yield task.trial, task.head | _joined(futures)
    finally:
        pool.shutdown(cancel_futures=True)


def _joined(futures: Sequence[Future[dict[str, Any]]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for future in futures:
        found |= future.result()
    return found


@dataclass(frozen=True, slots=True)
class _Task:
    """A design to be measured, on the network that takes it the fewest cycles."""

    setup: StudySetup
    networks: Sequence[WeightedNetwork]
    trial: FinishedTrial

    @property
    def design(self) -> Design:
        return design_of_trial(self.setup, self.trial)

    @property
    def predicted(self) -> dict[str, float]:
        return self.trial.outcome.measures

    @property
    def network(self) -> PredictedNetwork:
        networks = (each.network for each in self.networks)
        return min(networks, key=lambda each: self.predicted[f"{each.name.lower()}.cycles"])

    @property
    def head(self) -> dict[str, Any]:
        return {"design": self.design.machine.name, "network": self.network.name, "target": self.setup.target}


def _in_rtl(task: _Task) -> dict[str, Any]:
    network, design = task.network, task.design
    run = RunOptions(pricing=design.pricing, memory=design.memory, outputs_only=network.outputs_only)
    try:
        report = run_model(network.source, design.machine, "rtl", None, options=network.options, run=run).report
    except Error as error:
        return {"rtl_error": error.sentence}
    expected = task.predicted[f"{network.name.lower()}.cycles"]
    return {"matches_onnxruntime": report.matches_reference, "cycles": _beside(expected, report.cycles)}


def _synthesised(task: _Task) -> dict[str, Any]:
    machine, target = task.design.machine, task.setup.target
    try:
        sources = machine_design(machine, with_core=False)
        report = synthesise(SynthesisRequest(sources, machine.name, place=False), target, Silence().step)
    except Error as error:
        return {"synthesis_error": error.sentence}
    area = AreaTarget(target)
    measured = area.measured({unit: report.total(unit) for unit in report.units})
    return {"area": {each: _beside(task.predicted[each], measured[each]) for each in (*area.measures, "area")}}


_PARTS = (_in_rtl, _synthesised)
"""Measurements of a design, each on its own."""


def _beside(predicted: float, measured: float) -> dict[str, float]:
    return {"predicted": predicted, "measured": measured,
            "error": (predicted - measured) / measured if measured else 0.0}
