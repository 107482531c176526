"""The coefficients of energy/activity.py: networks run in RTL that counts toggles, fitted, each left out once.

``python -m tilewright.hardware.calibration.activity_fit [FOLDER]`` writes energy/activity.toml. What each run has shown
is kept in FOLDER, ``out/activity`` if it is not given; a run that is there is not made again.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tilewright.compiler.network.options import Options
from tilewright.energy.activity import ERROR, TABLE, TYPICAL, events, of_kind
from tilewright.isa.machine import Machine
from tilewright.runtime.execution.records import Counts
from tilewright.runtime.given_model import machine_given
from tilewright.runtime.model_source import choose_inputs, find_model
from tilewright.runtime.run_options import RunOptions
from tilewright.runtime.session import InferenceSession
from tilewright.sim.values.operand_samples import OperandToggles
from tilewright.sim.verilog.energy_blocks import ARRAY_BLOCKS, ENERGY_BLOCKS
from tilewright.tools.progress import Steps

__all__ = ["CASES", "CountedLayer", "CountedRun", "ToggleFit", "count_run", "fit", "load_run", "main", "typical"]

_LAYERS = Options(bands=False)
"""Toggles are fitted layer by layer, so none is computed in turn with others."""

CASES = ("lenet5@base", "lenet5_accel@base", "squeezenet-64@base", "detector-96@base", "mobilenetv2-96@base",
         "vgg16-32@base", "resnet18-32@base", "lenet5@nano", "lenet5_accel@nano", "squeezenet-64@nano",
         *(f"{network}@base,array={array}" for array in ("winograd", "inner", "plain")
           for network in ("lenet5", "lenet5_accel", "squeezenet-64", "detector-96", "mobilenetv2-96")))
"""Networks and machines that are run: 14 million cycles."""

_SWEEPS = 5000
"""Rounds of the fit over all coefficients; it has long stood still by then."""

_Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CountedLayer:
    """A layer of a run that counted toggles: its algorithm, its counters, toggles by block, and operands."""

    algorithm: str
    counts: Counts
    toggles: dict[str, int]
    operands: OperandToggles


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A network on a machine."""

    network: str
    machine: str
    layers: tuple[CountedLayer, ...]

    @property
    def case(self) -> str:
        """``network@machine``."""
        return f"{self.network}@{self.machine}"

    @property
    def made(self) -> Machine:
        """The machine that its name states."""
        return machine_given(self.machine).machine


def count_run(case: str, steps: Steps) -> CountedRun:
    """Run ``network@machine`` in RTL, and its program in the fast engine for its operands."""
    network, _, machine = case.partition("@")
    source, options = find_model(network, steps), RunOptions(count_toggles=True, steps=steps)
    session = InferenceSession(source.path, machine, "rtl", keep_tensors=True, options=_LAYERS,
                               run_options=options)
    session.run(None, choose_inputs(session.quantised_inputs, source, None).arrays)
    quick = InferenceSession(source.path, machine, "fast", keep_tensors=True, options=_LAYERS,
                             run_options=RunOptions(steps=steps))
    quick.run(None, choose_inputs(session.quantised_inputs, source, None).arrays)
    layers = [CountedLayer(layer.algorithm, dict(layer.counts), dict(layer.toggles), operands)
              for layer, operands in zip(session.report.layers, quick.operands, strict=False)]
    return CountedRun(network, machine, tuple(layers))


def load_run(path: Path) -> CountedRun:
    """Return a run that was kept."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return CountedRun(data["network"], data["machine"], tuple(
        CountedLayer(each["algorithm"], each["counts"], each["toggles"], OperandToggles(**each["operands"]))
        for each in data["layers"]))


@dataclass(frozen=True, slots=True)
class ToggleFit:
    """Coefficients of each block's events, and the error of each run whose network was left out of the fit.

    Attributes
    ----------
    coefficients : dict of str to dict of str to float
        By block, with the kind of array behind it where that matters: see `energy.activity.of_kind`.
    errors : dict of str to dict of str to float
        By the same names and ``network@machine``: predicted toggles over counted ones, less one. ``all`` is of the sum
        of a run's blocks.
    """

    coefficients: dict[str, dict[str, float]]
    errors: dict[str, dict[str, float]]


def fit(runs: Sequence[CountedRun]) -> ToggleFit:
    """Fit every block. Each run counts as much as any other, each of its layers as much as it toggles."""
    coefficients: dict[str, dict[str, float]] = {}
    errors: dict[str, dict[str, float]] = {}
    predicted = {run.case: 0.0 for run in runs}
    counted = dict(predicted)
    for block, array in _fits(runs):
        fitted = [run for run in runs if array in (None, run.made.array)]
        tables = {run.case: _table(run, block) for run in fitted}
        name = block if array is None else of_kind(block, array)
        names = list(events(fitted[0].layers[0].counts, "conv", OperandToggles(), fitted[0].made)[block])
        coefficients[name] = dict(zip(names, _solve(list(tables.values())).tolist(), strict=True))
        errors[name] = {}
        for run in fitted:
            features, toggles = tables[run.case]
            others = _solve([tables[other.case] for other in fitted if other.network != run.network])
            found, wanted = float((features @ others).sum()), float(toggles.sum())
            errors[name][run.case] = found / wanted - 1
            predicted[run.case] += found
            counted[run.case] += wanted
    errors["all"] = {case: predicted[case] / counted[case] - 1 for case in counted}
    return ToggleFit(coefficients, errors)


def _fits(runs: Sequence[CountedRun]) -> Iterator[tuple[str, str | None]]:
    """Yield each block, with each kind of array that was run where a block has coefficients for each, or None."""
    kinds = list(dict.fromkeys(run.made.array for run in runs))
    for block in ENERGY_BLOCKS:
        yield from ((block, kind) for kind in (kinds if block in ARRAY_BLOCKS else [None]))


def _table(run: CountedRun, block: str) -> tuple[_Matrix, _Matrix]:
    """Return a run's events (layers, events) and toggles (layers)."""
    machine = run.made
    found = [events(layer.counts, layer.algorithm, layer.operands, machine)[block] for layer in run.layers]
    return (np.array([list(each.values()) for each in found]),
            np.array([float(layer.toggles[block]) for layer in run.layers]))


def _solve(tables: Sequence[tuple[_Matrix, _Matrix]]) -> _Matrix:
    """Return the coefficients, none negative, of least squared error relative to each run's toggles."""
    features = np.concatenate([matrix / toggles.sum() for matrix, toggles in tables])
    wanted = np.concatenate([toggles / toggles.sum() for _, toggles in tables])
    scale = np.linalg.norm(features, axis=0)
    scale[scale == 0] = 1.0
    features = features / scale
    products, targets = features.T @ features, features.T @ wanted
    found = np.zeros(len(scale))
    for _ in range(_SWEEPS):
        for j in range(len(found)):
            if products[j, j] > 0:
                found[j] = max(0.0, found[j] + (targets[j] - products[j] @ found) / products[j, j])
    return found / scale


def typical(runs: Sequence[CountedRun]) -> dict[str, dict[str, float]]:
    """Return by kind of array the operands of each instruction on average over slots; those of the array per lane."""
    found: dict[str, dict[str, float]] = {}
    for array in dict.fromkeys(run.made.array for run in runs):
        means = found[of_kind(TYPICAL, array)] = {}
        for algorithm in ("conv23", "conv", "pool"):
            layers = [(layer, run.made) for run in runs if run.made.array == array for layer in run.layers
                      if layer.algorithm == algorithm and layer.counts["tile_slots"]]
            slots = sum(layer.counts["tile_slots"] for layer, _ in layers)
            for name in asdict(OperandToggles()):
                total = sum(layer.counts["tile_slots"] * _per_lane(name, layer.operands, machine)
                            for layer, machine in layers)
                means[f"{algorithm}_{name}"] = total / slots if slots else 0.0
    return found


def _per_lane(name: str, operands: OperandToggles, machine: Machine) -> float:
    value: float = getattr(operands, name)
    return value / machine.lanes if name == "array" else value


def _table_text(found: ToggleFit, means: Mapping[str, Mapping[str, float]]) -> str:
    """Return energy/activity.toml."""
    worst = {block: max(errors.values(), key=abs) for block, errors in found.errors.items()}
    rms = {block: float(np.sqrt(np.mean(np.square(list(errors.values()))))) for block, errors in found.errors.items()}
    lines = ["# Register toggles per event of each block, fitted to RTL runs that counted them.",
             "# Made by python -m tilewright.hardware.calibration.activity_fit from:",
             f"# {', '.join(found.errors['all'])}.", "#",
             "# Error of a run's toggles when its network was left out of the fit, root mean square and largest:"]
    lines += [f"#   {block:<32} {100 * rms[block]:5.1f} %  {100 * worst[block]:+6.1f} %" for block in worst]
    largest = {f'"{block}"': abs(worst[block]) for block in found.coefficients}
    for section, values in {**found.coefficients, ERROR: largest, **means}.items():
        lines += ["", f'["{section}"]', *(f"{name} = {value:.4g}" for name, value in values.items())]
    return "\n".join(lines) + "\n"


def main(folder: Path) -> None:
    """Run what has not been run, fit, and write the table."""
    steps = Steps()
    runs = []
    for case in CASES:
        kept = folder / f"{case}.json"
        if not kept.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(asdict(count_run(case, steps))), encoding="utf-8")
        runs.append(load_run(kept))
    text = _table_text(fit(runs), typical(runs))
    TABLE.write_text(text, encoding="utf-8")
    print(text[:text.index("\n\n")])


if __name__ == "__main__":
    main(Path(*sys.argv[1:2] or ["out/activity"]))
