"""Verify the front in hardware: run its designs in RTL on the smallest network, and synthesise them."""

import json
from collections.abc import Sequence
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
from tilewright.runtime.run_options import RunOptions
from tilewright.tools.files import write_file
from tilewright.tools.progress import Steps

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

    What was measured once is kept in the folder. Processes of one exploration measure in turns.
    """
    kept = folder / VERIFIED
    kept.mkdir(exist_ok=True)
    setup, found = study.setup, {}
    with study.turn("verifying"):
        for trial in chosen_points(front, most):
            path = kept / f"{point_name(setup, trial.number)}.json"
            if not path.exists():
                content = _measured(setup, networks, trial, steps)
                write_file(path, (json.dumps(content, indent=2) + "\n").encode())
        for trial in front:
            path = kept / f"{point_name(setup, trial.number)}.json"
            if path.exists():
                found[trial.number] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _measured(setup: StudySetup, networks: Sequence[WeightedNetwork], trial: FinishedTrial, steps: Steps
              ) -> dict[str, Any]:
    """Return what was predicted and measured of a design, each with its relative error; or why it was not."""
    design = design_of_trial(setup, trial)
    predicted = trial.outcome.measures
    smallest = min(networks, key=lambda each: predicted[f"{each.network.name.lower()}.cycles"])
    found: dict[str, Any] = {"design": design.machine.name, "network": smallest.network.name,
                             "target": setup.target}
    try:
        found |= _in_rtl(smallest, design, predicted, steps)
    except Error as error:
        found["rtl_error"] = error.sentence
    try:
        found["area"] = _synthesised(setup.target, design, predicted, steps)
    except Error as error:
        found["synthesis_error"] = error.sentence
    return found


def _in_rtl(chosen: WeightedNetwork, design: Design, predicted: dict[str, float], steps: Steps) -> dict[str, Any]:
    network = chosen.network
    run = RunOptions(pricing=design.pricing, steps=steps, memory=design.memory,
                     outputs_only=network.outputs_only)
    report = run_model(network.source, design.machine, "rtl", None, options=network.options, run=run).report
    expected = predicted[f"{network.name.lower()}.cycles"]
    return {"matches_onnxruntime": report.matches_reference,
            "cycles": _beside(expected, report.cycles)}


def _synthesised(target: str, design: Design, predicted: dict[str, float], steps: Steps) -> dict[str, Any]:
    name = design.machine.name
    with steps.step(f"Elaborating {name}"):
        sources = machine_design(design.machine, with_core=False)
    report = synthesise(SynthesisRequest(sources, name, place=False), target, steps.step)
    area = AreaTarget(target)
    measured = area.measured({unit: report.total(unit) for unit in report.units})
    return {each: _beside(predicted[each], measured[each]) for each in (*area.measures, "area")}


def _beside(predicted: float, measured: float) -> dict[str, float]:
    return {"predicted": predicted, "measured": measured,
            "error": (predicted - measured) / measured if measured else 0.0}
