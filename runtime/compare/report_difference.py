"""Two reports side by side: totals, and layer by layer cycles, bytes and energy, and what changed in the plan.

A report is the JSON of ``tilewright run --json``; with ``--explain`` it has the plan too, from which the reasons are.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.errors import InputError
from tilewright.runtime.design.design import Design
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.user_text import read_user_text

__all__ = ["LayerDifference", "LayerSide", "ReportDifference", "TotalDifference", "compare_reports", "predicted_side",
           "read_side"]

_NUMBERS = ("cycles", "bytes_read", "bytes_written", "energy_uj")
"""Keys that each layer of a report must have, beside its name."""

_PLAN = ("algorithm", "tile", "block", "loop_order", "on_chip")


@dataclass(frozen=True, slots=True)
class LayerSide:
    """A layer in one of the reports: its cost and, if the report has them, its plan and its bound."""

    cycles: int
    bytes: int
    energy_uj: float
    how: dict[str, str]
    bound: str


@dataclass(frozen=True, slots=True)
class LayerDifference:
    """A layer by name on both sides; None where a report does not have it."""

    name: str
    first: LayerSide | None
    second: LayerSide | None

    @property
    def changes(self) -> tuple[str, ...]:
        """Differences in how it is computed and what bounds it, as ``bound: memory → compute``."""
        if self.first is None or self.second is None:
            return (f"only in the {'second' if self.first is None else 'first'}",)
        first, second = self.first.how | {"bound": self.first.bound}, self.second.how | {"bound": self.second.bound}
        return tuple(f"{key}: {first[key]} → {second[key]}" for key in first
                     if first[key] and second.get(key) and first[key] != second[key])


@dataclass(frozen=True, slots=True)
class TotalDifference:
    """A figure of the whole run on both sides."""

    name: str
    first: float
    second: float

    @property
    def ratio(self) -> float | None:
        """The second over the first; None if that is 0."""
        return self.second / self.first if self.first else None


@dataclass(frozen=True, slots=True)
class ReportDifference:
    """Two reports: what each is of, the figures of the runs, and the layers in the first's order."""

    first: str
    second: str
    totals: tuple[TotalDifference, ...]
    design: tuple[str, ...]
    layers: tuple[LayerDifference, ...]

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        return {"first": self.first, "second": self.second, "design": list(self.design),
                "totals": {each.name: {"first": each.first, "second": each.second, "ratio": each.ratio}
                           for each in self.totals},
                "layers": [asdict(each) | {"changes": list(each.changes)} for each in self.layers]}


def predicted_side(network: PredictedNetwork, design: Design) -> dict[str, Any]:
    """Return the report of a network on a design as JSON, its plan included; without values."""
    report, explanation = network.predict_with_plan(design)
    return report.to_json() | {"plan": explanation.to_json()}


def read_side(path: Path) -> dict[str, Any]:
    """Return a report that ``tilewright run --json`` wrote.

    Raises
    ------
    InputError
        If the file is none.
    """
    try:
        data = json.loads(read_user_text(path))
    except OSError as error:
        raise InputError(f"Report {str(path)!r} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"Report {str(path)!r} must be JSON: {error}") from error
    layers = data.get("layers") if isinstance(data, dict) else None
    if not isinstance(layers, list) or not layers or not all(map(_is_layer, layers)) or not all(
            isinstance(data.get(key), int | float) for key in ("cycles", "milliseconds", "milliwatts")):
        raise InputError(f"Report {str(path)!r} must be a file written by `tilewright run --json`, with layers that "
                         f"have a name, {', '.join(_NUMBERS)}")
    return data


def _is_layer(data: Any) -> bool:
    return (isinstance(data, dict) and isinstance(data.get("name"), str)
            and all(isinstance(data.get(key), int | float) for key in _NUMBERS))


def compare_reports(first: Mapping[str, Any], second: Mapping[str, Any]) -> ReportDifference:
    """Return the difference of two reports' JSON."""
    sides = _sides(first), _sides(second)
    layers = tuple(LayerDifference(name, sides[0].get((name, count)), sides[1].get((name, count)))
                   for name, count in _merged(list(sides[0]), list(sides[1])))
    return ReportDifference(
        first=_title(first), second=_title(second), design=tuple(_design_changes(first, second)), layers=layers,
        totals=tuple(TotalDifference(name, *(_total(side, name) for side in (first, second)))
                     for name in ("cycles", "milliseconds", "bytes", "energy_uj", "milliwatts")))


def _title(report: Mapping[str, Any]) -> str:
    return f"{report.get('model', 'a model')} on {report.get('machine', 'a machine')}"


def _total(report: Mapping[str, Any], name: str) -> float:
    if name in ("bytes", "energy_uj"):
        energy = report.get("energy")
        if name == "energy_uj" and isinstance(energy, dict) and isinstance(energy.get("total_uj"), int | float):
            return float(energy["total_uj"])
        keys = ("bytes_read", "bytes_written") if name == "bytes" else ("energy_uj",)
        return sum(layer[key] for layer in report["layers"] for key in keys)
    return report[name]


def _design_changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Return the values of the design that differ, as ``machine.lanes: 4 → 8``."""
    designs = [report.get("design") for report in (first, second)]
    flat = [{f"{section}.{key}": value for section, values in design.items() if isinstance(values, dict)
             for key, value in values.items()} if isinstance(design, dict) else {} for design in designs]
    return [f"{key}: {value} → {flat[1][key]}" for key, value in flat[0].items()
            if key in flat[1] and flat[1][key] != value]


_Key = tuple[str, int]


def _sides(report: Mapping[str, Any]) -> dict[_Key, LayerSide]:
    """Return the layers of a report by name, and by how many of that name came before."""
    plan = report.get("plan")
    plans = plan.get("layers", []) if isinstance(plan, dict) else []
    known = {each.get("name"): each for each in plans if isinstance(each, dict)} if isinstance(plans, list) else {}
    found: dict[_Key, LayerSide] = {}
    for layer in report["layers"]:
        count = sum(name == layer["name"] for name, _ in found)
        found[layer["name"], count] = LayerSide(
            layer["cycles"], layer["bytes_read"] + layer["bytes_written"], layer["energy_uj"],
            _how(known.get(layer["name"], {})), str(known.get(layer["name"], {}).get("bound", "")) or _stall(layer))
    return found


def _how(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return how a layer is computed, in words by key."""
    if any(key not in plan for key in _PLAN) or not all(isinstance(plan[key], dict) for key in ("tile", "block",
                                                                                                "on_chip")):
        return {}
    tile, block, chip = plan["tile"], plan["block"], plan["on_chip"]
    on_chip = " and ".join(name for name in ("input", "output") if chip.get(name))
    return {"instruction": str(plan["algorithm"]),
            "tiles": f"{tile.get('count')} of {tile.get('rows')} x {tile.get('columns')}",
            "weight blocks": f"{block.get('count')} of {block.get('channels')} channels",
            "order": str(plan["loop_order"]), "on chip": on_chip or "nothing"}


def _stall(layer: Mapping[str, Any]) -> str:
    """Return the cause that held the array up most, if the report says."""
    stalls = layer.get("stalls")
    if not isinstance(stalls, dict) or not stalls or not all(isinstance(each, int) for each in stalls.values()):
        return ""
    cause = max(stalls, key=lambda name: stalls[name])
    return str(cause).removeprefix("mac_").replace("_", " ") if stalls[cause] else "array"


def _merged(first: Sequence[_Key], second: Sequence[_Key]) -> list[_Key]:
    """Return the keys of both: the first's in order, and those of the second alone behind what they follow there."""
    result, place = list(first), 0
    for key in second:
        if key in result:
            place = result.index(key) + 1
        else:
            result.insert(place, key)
            place += 1
    return result
