"""The page docs/zoo.md: what networks cost on each preset, what runs where, exactness, and published silicon."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.bench.zoo.zoo_list import Silicon
from tilewright.tools.markdown import digits, percent, table
from tilewright.tools.templates import render

__all__ = ["MUCH", "NetworkFacts", "clause", "zoo_page"]

MUCH = 0.1
"""A network that spends more of its cycles on the core is named with the reason."""

_TEMPLATE = Path(__file__).with_name("zoo_page.md.j2")
_NAMED_CAUSES = 0.01
"""Causes of a smaller part of all cycles are left out of the reason."""

_DESIGNS = ("nano", "base", "large")
_COST_HEADS = ("network", "MACs, M", *(f"{what}, {design}" for what in ("cycles", "ms", "µJ") for design in _DESIGNS),
               "weights, bytes", "working memory", "core")
_HEADS = ("network", "from", "what runs where", "cycles", "core", "against ONNX Runtime")
_SILICON_HEADS = ("network", "system", "published", "cycles", "our cycles, base", "our cycles, large", "clock",
                  "source")
_WORTH_NAMING = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFacts:
    """Facts about a network.

    Attributes
    ----------
    name, source, licence, given : str
        From the list; ``given`` are the options that it is run with.
    missing, refused, crashed : str
        A file that is not there, the sentence that refuses it, an exception; empty if it ran.
    cycles, macs : int
    layers : dict of str to int
        How many layers each algorithm computes; ``core`` is the host core.
    core_share : float
        Of the cycles.
    causes : list of dict
        Causes of the core's share, as in `runtime.execution.core_share.CoreCause`, with layers by number.
    ranges : str
        Samples of its ranges, if it was quantised here.
    matches : bool or None
        Whether all that was compared is ONNX Runtime's.
    compared, floats, loose, levels : int
    untrusted, difference : str
        As in `runtime.oracle.comparison.Comparison`.
    costs : list of dict
        As in `runtime.card.model_card.CardCost`: one for each preset.
    accuracy : float or None
        Top-1 of the hardware's values over ``images``, where the network comes with labels.
    """

    name: str
    source: str
    licence: str
    given: str = ""
    missing: str = ""
    refused: str = ""
    crashed: str = ""
    cycles: int = 0
    macs: int = 0
    layers: dict[str, int] = field(default_factory=dict)
    core_share: float = 0.0
    causes: list[dict[str, Any]] = field(default_factory=list)
    ranges: str = ""
    matches: bool | None = None
    compared: int = 0
    floats: int = 0
    loose: int = 0
    levels: int = 0
    untrusted: str = ""
    difference: str = ""
    costs: list[dict[str, Any]] = field(default_factory=list)
    accuracy: float | None = None
    images: int = 0

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "NetworkFacts":
        """Return the facts that ``asdict`` and JSON have turned into ``data``."""
        return cls(**data)

    @property
    def ran(self) -> bool:
        """Whether it was compiled and run."""
        return not (self.missing or self.refused or self.crashed)

    @property
    def busy(self) -> str:
        """The core's share and its causes, in words, if it is more than ``MUCH``; else empty."""
        if self.core_share <= MUCH:
            return ""
        causes = [f"{cause['operator']} {percent(cause['share'], 1)} ({cause['reason']})" for cause in self.causes
                  if cause["share"] >= _NAMED_CAUSES]
        return f"{percent(self.core_share)} of {digits(self.cycles)} cycles: {', '.join(causes)}"


def zoo_page(networks: Sequence[NetworkFacts], silicon: Sequence[Silicon] = ()) -> str:
    """Return the page."""
    ran = [each for each in networks if each.ran]
    return render(
        _TEMPLATE, costs=table(_COST_HEADS, [_cost_row(each) for each in ran if each.costs], left=1) if ran else "",
        networks=table(_HEADS, map(_row, ran), left=None) if ran else "",
        silicon=table(_SILICON_HEADS, [_silicon_row(each, ran) for each in silicon], left=None) if silicon else "",
        busy=[each for each in ran if each.busy],
        refused=[(each, clause(each.refused)) for each in networks if each.refused],
        crashed=[each for each in networks if each.crashed], missing=[each for each in networks if each.missing],
        ran=len(ran), listed=len(networks))


def _silicon_row(each: Silicon, ran: Sequence[NetworkFacts]) -> list[str]:
    """Return the row of a published figure, with our cycles of the same networks, in their order."""
    costs = {(facts.name, cost["machine"]): cost for facts in ran for cost in facts.costs if not cost["refused"]}
    ours = [", ".join(f"{costs[name, machine]['cycles']:,}" if (name, machine) in costs else "–"
                      for name in each.ours) or "–" for machine in _DESIGNS[1:]]
    return [each.network, each.system, each.published, each.cycles, *ours, each.clock, each.source]


def _cost_row(facts: NetworkFacts) -> list[str]:
    """Return the row of a network: cycles, time and energy on each preset, the rest on the second, base."""
    judged = "" if facts.accuracy is None else f", {percent(facts.accuracy, 1)} of {facts.images} images right"
    by_design = {cost["machine"]: cost for cost in facts.costs if not cost["refused"]}
    figures = [by_design[design] if design in by_design else None for design in _DESIGNS]
    cells = [
        *("–" if cost is None else f"{cost['cycles']:,}" for cost in figures),
        *("–" if cost is None else digits(cost[what]) for what in ("milliseconds", "energy_uj") for cost in figures)]
    base = figures[1]
    rest = ["–"] * 3 if base is None else [f"{base['weight_bytes']:,}", f"{base['working_bytes']:,}",
                                           percent(base["core_share"], 1)]
    return [facts.name + judged, digits(facts.macs / 1e6), *cells, *rest]


def clause(sentence: str) -> str:
    """Return the reason of a refusal without its last clause, the way out."""
    return (sentence.rpartition(";")[0] or sentence).strip().rstrip(".")


def _row(facts: NetworkFacts) -> list[str]:
    name = f"{facts.name} ({facts.given})" if facts.given else facts.name
    noise = "; ranges from noise" if facts.ranges == "noise" else ""
    return [name, f"{facts.source}, {facts.licence}", _where(facts) + noise, digits(facts.cycles),
            percent(facts.core_share, 1), _exactness(facts)]


def _where(facts: NetworkFacts) -> str:
    """Return how many layers each algorithm computes, and the operators that the core is busy with."""
    parts = [f"{count} {name}" for name, count in sorted(facts.layers.items(), key=lambda each: -each[1])
             if name != "core"]
    if count := facts.layers.get("core", 0):
        named = list(dict.fromkeys(cause["operator"] for cause in facts.causes if cause["share"] >= _WORTH_NAMING))
        parts.append(f"core {count}" + (f" ({', '.join(named)})" if named else ""))
    return ", ".join(parts)


def _exactness(facts: NetworkFacts) -> str:
    if facts.untrusted:
        return facts.untrusted
    if facts.matches is None:
        return "not compared here"
    if not facts.matches:
        return f"**differs**: {facts.difference}"
    held = facts.compared - facts.floats - facts.loose
    said = [f"{held} tensors equal"] if held else []
    said += [f"{facts.floats} of floats nearly"] if facts.floats else []
    said += [f"{facts.loose} declared, up to {facts.levels} levels off"] if facts.loose else []
    return ", ".join(said)
