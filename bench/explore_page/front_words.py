"""Sentences on the changes along the front of an exploration."""

from collections.abc import Sequence

import numpy as np

from tilewright.bench.explore_page.shown_exploration import ShownExploration, Value

__all__ = ["front_words"]

_CLEAR = 0.6


def front_words(shown: ShownExploration) -> str:
    """Return what the designs of the front have in common, and what changes from its first to its last.

    The front is in the order of the first objective. A parameter falls or rises along it if its ranks do so mostly
    (Spearman's coefficient of at least 0.6); of others only the names are told.
    """
    front = shown.front
    if len(front) < 2:
        return "The front is a single design: it is best in every objective." if front else ""
    costs = ", ".join(f"{shown.titled(name)} {_text(front[0].measures[name])} → {_text(front[-1].measures[name])}"
                      for name in shown.objectives)
    groups: dict[str, list[str]] = {"falling": [], "rising": [], "without a direction": [], "the same in all": []}
    for name in shown.axes:
        values, words = [design.chosen[name] for design in front], shown.titled(name)
        if len(set(values)) == 1:
            groups["the same in all"].append(f"{words} {_text(values[0])}")
        elif abs(trend := _trend(values)) < _CLEAR:
            groups["without a direction"].append(name.replace("_", " "))
        else:
            groups["falling" if trend < 0 else "rising"].append(f"{words} {_text(values[0])} → {_text(values[-1])}")
    changes = "; ".join(f"{way}: {', '.join(found)}" for way, found in groups.items() if found)
    return f"From {front[0].name} to {front[-1].name}: {costs}. {changes[:1].upper()}{changes[1:]}."


def _trend(values: Sequence[Value]) -> float:
    """Return Spearman's coefficient of values with their places; 0 of what is no number."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        return 0.0
    ranks = np.array([np.mean([place for place, other in enumerate(sorted(numbers)) if other == value])
                      for value in numbers])
    return float(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1])


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return str(value)
