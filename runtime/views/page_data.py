"""The figures of a run's page, as dicts, lists and numbers, from which charts and tables are drawn."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from tilewright.compiler.explain import Explanation, LayerExplanation
from tilewright.compiler.tensor_lives import WEIGHTS
from tilewright.isa.machine import Machine
from tilewright.runtime.advice.largest_costs import MOST_COSTS, largest_costs
from tilewright.runtime.advice.machine_changes import TriedChange
from tilewright.runtime.compared_run import ComparedRun
from tilewright.runtime.execution.job import Job, JobLayer
from tilewright.runtime.execution.report import LayerReport, Report
from tilewright.runtime.execution.verdict import TensorVerdict, count_text, headline, not_compared
from tilewright.runtime.views.command_timeline import BUFFERS, UNITS, Slice, levels, occupancy, slices
from tilewright.runtime.views.cost_rows import cost_rows
from tilewright.runtime.views.layer_facts import attribute_texts, blocks, tensor_texts
from tilewright.sim.timing.command_times import CommandTimes

__all__ = ["MOST_SLICES", "page_data", "roofs"]

MOST_SLICES = 150_000
"""More commands than so many are joined, neighbours of a unit and layer, so that the page stays small."""

_STEPS = 800
"""Points of a curve over time."""

_WINOGRAD_GAIN = 2.25
"""Products of a 3x3 convolution over those that F(2x2,3x3) multiplies."""


def page_data(run: ComparedRun, tried: Sequence[TriedChange] = (), machine: str = "") -> dict[str, Any]:
    """Return the data of a run's page.

    Parameters
    ----------
    run : ComparedRun
    tried : sequence of TriedChange
        What `runtime.advice.machine_changes.tried_changes` found.
    machine : str
        What stood behind ``--machine``.
    """
    report, job = run.report, run.job
    explained = {each.name: each for each in run.explanation.layers} if run.explanation is not None else {}
    entries = job.layers if job is not None and len(job.layers) == len(report.layers) else ()
    costs, names = largest_costs(report), [layer.name for layer in report.layers]
    tensors = [tensor_texts(each, job) for each in entries] if job is not None else []
    shapes = {each.name: job.tensors[each.output][0].shape for each in entries if each.output in job.tensors} \
        if job is not None else {}
    return {
        "title": report.title,
        "cycles": report.cycles,
        "tail": report.tail_cycles,
        "figures": _figures(report),
        "notes": list(report.notes),
        "costs": cost_rows(costs, tried, machine),
        "other_costs": sum(each.cycles for each in costs[MOST_COSTS:]),
        "layers": [_layer(layer, verdict, explained.get(layer.name)) | {"block": block, "tensors": texts}
                   for layer, verdict, block, texts in zip(report.layers, report.verdicts, blocks(names, shapes),
                                                           tensors or [{}] * len(names), strict=True)],
        "outputs": [[each.name, str(each.verdict)] for each in report.judged_outputs],
        "edges": _edges(entries),
        "roofs": roofs(report, job.machine if job is not None else None),
        "timeline": _timeline(job, run.times, report) if job is not None and run.times is not None else None,
        "memory": _memory(run.explanation),
        "design": report.design,
    }


def _figures(report: Report) -> list[tuple[str, str, str]]:
    """Return the key figures: what, how much, and a range or remark."""
    total, power = report.energy.total, report.milliwatts
    scale = power / total.uj if total.uj else 0.0
    relative = _range(total.relative_low_uj, total.relative_high_uj)
    absolute = _range(total.absolute_low_uj, total.absolute_high_uj)
    share = 100 * report.core_cycles / report.cycles if report.cycles else 0.0
    return [
        ("cycles", f"{report.cycles:,}", "counted in RTL" if report.engine == "rtl" else
         _prediction(report)),
        ("one inference" if report.images == 1 else f"a batch of {report.images}", f"{_digits(report.milliseconds)} ms",
         f"{_digits(report.inferences_per_second)} a second at {report.clock_mhz:g} MHz"),
        ("energy", f"{_digits(total.uj)} µJ",
         f"between designs {relative}; absolute {absolute}"),
        ("power", f"{_digits(power)} mW",
         f"absolute {_range(total.absolute_low_uj * scale, total.absolute_high_uj * scale)}; {report.technology}"),
        ("MAC per multiplier and cycle", f"{report.macs_per_multiplier_cycle:.2f}",
         f"{report.macs:,} MAC on {report.multipliers} multipliers"),
        ("on the host core", f"{share:.1f} %", "of the cycles"),
        *((f"{what} equal to ONNX Runtime", headline(each.verdict for each in judged),
           count_text((each.verdict for each in judged), what) if judged else "there was no comparison")
          for what, judged in (("outputs", report.judged_outputs), ("layers", report.judged))),
    ]


def _prediction(report: Report) -> str:
    """Say how near to RTL predicted cycles are: those of the datapath, and those of the host core."""
    datapath = "predicted: the datapath within 2 % of RTL per network, 5 % per layer"
    return f"{datapath}; those of the host core are an estimate, within about 35 %" if report.core_cycles else datapath


def _range(low: float, high: float) -> str:
    return f"{_digits(low)} … {_digits(high)}"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _layer(layer: LayerReport, verdict: TensorVerdict | None, plan: LayerExplanation | None) -> dict[str, Any]:
    return {
        "name": layer.name, "kind": layer.algorithm if layer.kind == "conv" else layer.kind,
        "place": "host core" if layer.algorithm == "core" else "coprocessor",
        "operator": layer.operator, "reason": layer.reason, "nodes": list(layer.onnx_nodes),
        "exact": str(verdict or not_compared("there was no comparison")), "macs": layer.macs, "cycles": layer.cycles,
        "busy": {"mac_issue": layer.counts.get("mac_issue", 0), **layer.stalls},
        "read": layer.bytes_read, "written": layer.bytes_written, "energy": layer.energy.total_uj,
        "low": layer.energy.low_uj, "high": layer.energy.high_uj,
        "components": {name: round(value, 6) for name, value in layer.energy.by_component.items()},
        "plan": plan.to_json() | {"attributes": attribute_texts(plan.attributes)} if plan is not None else None,
    }


def _edges(layers: Sequence[JobLayer]) -> list[tuple[int, int]]:
    """Return which layer's result which other layer takes, by index; -1 stands for the model's inputs."""
    makers: dict[str, int] = {}
    found = []
    for index, layer in enumerate(layers):
        found += [(makers.get(name, -1), index) for name in dict.fromkeys(layer.inputs)]
        makers |= dict.fromkeys(layer.outputs, index)
    return list(dict.fromkeys(found))


def roofs(report: Report, machine: Machine | None) -> dict[str, float]:
    """Return the limits of a design: MAC a cycle of the array for ``conv`` and ``conv23``, bytes a cycle of the bus."""
    found = {"conv": float(report.multipliers), "bus": float(report.memory.bytes_per_cycle)}
    if machine is not None:
        found = {"conv": float(machine.macs_per_slot),
                 "bus": float(min(machine.bus_bytes, report.memory.bytes_per_cycle))}
        if machine.winograd:
            found["conv23"] = _WINOGRAD_GAIN * machine.macs_per_slot
    return found


def _timeline(job: Job, times: CommandTimes, report: Report) -> dict[str, Any]:
    """Return the slices of each unit as columns, begins as differences, and curves over time."""
    found = _joined(list(slices(job, times)), report.cycles)
    names = list(dict.fromkeys(each.name for each in found))
    numbers = {name: index for index, name in enumerate(names)}
    tracks = {}
    for unit in UNITS:
        mine = [each for each in found if each.unit == unit]
        tracks[unit] = {
            "begin": [after - before for before, after in pairwise([0, *(each.begin for each in mine)])],
            "length": [each.end - each.begin for each in mine], "name": [numbers[each.name] for each in mine],
            "layer": [each.function for each in mine]}
    held = occupancy(job, times)
    capacity = dict(zip(BUFFERS.values(), (job.machine.activation_bytes, job.machine.weight_bytes,
                                           job.machine.result_bytes), strict=True))
    return {"names": names, "tracks": tracks, "measured": times.measured,
            "joined": len(found) < len(times.ended) // 100,
            "buffers": [{"name": name, "capacity": capacity[name],
                         "level": levels(changes, report.cycles, _STEPS)} for name, changes in held.items()]}


def _joined(found: list[Slice], cycles: int) -> list[Slice]:
    """Return at most `MOST_SLICES` slices or so: of more, those of a unit and layer that lie closest become one."""
    gap = 1
    while len(found) > MOST_SLICES and gap < cycles:
        last: dict[str, int] = {}
        kept: list[Slice] = []
        for each in found:
            index = last.get(each.unit, -1)
            before = kept[index] if index >= 0 else None
            if before is not None and before.function == each.function and each.begin - before.end <= gap:
                kept[index] = Slice(each.unit, f"several, {before.name.removeprefix('several, ')} first",
                                    each.function, before.begin, each.end)
                continue
            last[each.unit] = len(kept)
            kept.append(each)
        found, gap = kept, gap * 4
    return found


def _memory(explanation: Explanation | None) -> dict[str, Any] | None:
    """Return the places of tensors in main memory from layer to layer."""
    if explanation is None or not explanation.lives:
        return None
    weights = sum(each.size for each in explanation.lives if each.name == WEIGHTS)
    tensors = [each for each in explanation.lives if each.name != WEIGHTS]
    base = min((each.address for each in tensors), default=0)
    return {"bytes": explanation.memory_bytes, "weights": weights,
            "lives": [[each.name, each.address - base, each.size, each.first, each.last] for each in tensors]}
