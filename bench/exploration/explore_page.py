"""The page explore.html of a study: its trials, its front and what they are compared with, as the page shows them."""

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.bench.exploration.design_cost import OBJECTIVES, UNITS, Verdict
from tilewright.bench.exploration.exploration_results import DESIGNS, parameters_of, point_name
from tilewright.bench.exploration.exploration_study import FinishedTrial, StudySetup
from tilewright.bench.explore_page.exploration_html import exploration_html
from tilewright.bench.explore_page.shown_exploration import Bound, ReferenceDesign, ShownDesign, ShownExploration

__all__ = ["explore_page"]

_PARAMETER_UNITS = {
    "bus_bytes": "bytes", "activation_bytes": "bytes", "weight_bytes": "bytes", "result_bytes": "bytes",
    "bytes_per_cycle": "bytes", "latency_cycles": "cycles", "watchdog_cycles": "cycles", "command_cycles": "cycles",
    "queue_depth": "commands", "parameter_channels": "channels", "mhz": "MHz"}


def explore_page(setup: StudySetup, trials: Sequence[FinishedTrial], content: Mapping[str, Any],
                 importances: Mapping[str, Mapping[str, tuple[float, float, float]]]) -> str:
    """Return an exploration as one HTML file that asks for nothing else.

    Parameters
    ----------
    setup : StudySetup
    trials : sequence of FinishedTrial
    content : mapping
        As `exploration_results.front_json` returns it, with ``start`` and ``references``.
    importances : mapping of str to mapping
        As `ExplorationStudy.importance_ranges` returns them.
    """
    points = {point["trial"]: point for point in content["points"]}
    order = {number: place for place, number in enumerate(points)}
    good = sorted((each for each in trials if each.outcome.verdict is Verdict.good),
                  key=lambda each: order.get(each.number, len(order)))
    return exploration_html(ShownExploration(
        title=f"Exploration of {', '.join(setup.networks)}", command=content["command"], target=setup.target,
        objectives={name: OBJECTIVES[name] for name in setup.objectives}, units={**UNITS, **_PARAMETER_UNITS},
        axes=setup.space.axes, designs=[_design(setup, each, points.get(each.number)) for each in good],
        references=[ReferenceDesign(each["name"], each["measures"])
                    for each in (content.get("start"), *content.get("references", ())) if each and each["measures"]],
        bounds=[Bound(each.measure, each.sign, each.bound) for each in setup.limits],
        verdicts=content["verdicts"], importances=importances))


def _design(setup: StudySetup, trial: FinishedTrial, point: Mapping[str, Any] | None) -> ShownDesign:
    parameters = parameters_of(setup, trial.choice)
    chosen = {name: parameters.get(name, value) for name, value in trial.choice.items()}
    name, network = point_name(setup, trial.number), next(iter(setup.networks))
    verified = (point or {}).get("verified") or {}
    measured = {"cycles": _measured(verified.get("cycles"), verified.get("rtl_error")),
                "area": _measured((verified.get("area") or {}).get("area"), verified.get("synthesis_error"))}
    return ShownDesign(number=trial.number, name=name, on_front=point is not None,
                       chosen=chosen | {key: value for key, value in trial.choice.items() if key not in chosen},
                       measures=trial.outcome.measures, measured={} if point is None else measured,
                       command=f"tilewright run {network} --machine " + (
                           f"{DESIGNS}/{name}.toml" if point is not None else _flags(setup, trial)))


def _flags(setup: StudySetup, trial: FinishedTrial) -> str:
    """Return the machine of a design that has no file: the space's own with what was chosen."""
    base = setup.space.base
    design = setup.space.design(trial.choice)
    first, machine = base.to_json()["machine"], design.to_json()["machine"]
    changed = [f"{key}={str(value).lower() if isinstance(value, bool) else value}"
               for key, value in machine.items() if first[key] != value]
    memory = "" if design.memory == base.memory else " --memory " + ",".join(
        f"{name}={value}" for name, value in _memory(design.timing.to_json()).items())
    clock = "" if design.pricing.clock_mhz == base.pricing.clock_mhz else f" --clock {design.pricing.clock_mhz:g}"
    return ",".join([base.machine.name, *changed]) + memory + clock


def _memory(timing: Mapping[str, Any]) -> dict[str, Any]:
    if "dram" in timing:
        return {"dram": timing["dram"]}
    return {"latency": timing["latency_cycles"], "bytes": timing["bytes_per_cycle"]}


def _measured(pair: Mapping[str, float] | None, error: str | None) -> str:
    return error or "–" if pair is None else f"{pair['measured']:,.6g} ({pair['error']:+.2%})"
