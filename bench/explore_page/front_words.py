"""What changes along the front of an exploration, in sentences."""

from collections.abc import Sequence

from tilewright.bench.explore_page.shown_exploration import ShownExploration, Value

__all__ = ["front_words"]


def front_words(shown: ShownExploration) -> str:
    """Return what the designs of the front have in common, and what changes from its first to its last.

    The front is in the order of the first objective. A parameter rises or falls if it never turns; of others the values
    that occur are named.
    """
    front, objectives = shown.front, list(shown.objectives)
    if len(front) < 2:
        return "The front is a single design: it is best in every objective." if front else ""
    first = objectives[0]
    sentences = [f"From {front[0].name} to {front[-1].name}, " + " and ".join(
        _between(shown.titled(name), [design.measures[name] for design in front]) for name in objectives) + "."]
    turns: dict[str, list[str]] = {"moves": [], "keeps": [], "varies": []}
    for name in shown.axes:
        values = [design.chosen[name] for design in front]
        words = shown.titled(name)
        if len(set(values)) == 1:
            turns["keeps"].append(f"{words} {_text(values[0])}")
        elif (way := _way(values)) is not None:
            turns["moves"].append(f"{words} {way} from {_text(values[0])} to {_text(values[-1])}")
        else:
            turns["varies"].append(f"{words} ({', '.join(map(_text, dict.fromkeys(values)))})")
    if turns["moves"]:
        sentences.append(f"As {first} grow, {'; '.join(turns['moves'])}.")
    if turns["varies"]:
        sentences.append(f"Without a direction: {'; '.join(turns['varies'])}.")
    if turns["keeps"]:
        sentences.append(f"All designs of the front have {', '.join(turns['keeps'])}.")
    return " ".join(sentences)


def _between(name: str, values: Sequence[float]) -> str:
    way = "rises" if values[-1] > values[0] else "falls" if values[-1] < values[0] else "stays"
    return f"{name} {way} from {_text(values[0])} to {_text(values[-1])}"


def _way(values: Sequence[Value]) -> str | None:
    """Return whether numbers rise or fall without a turn; None if they turn or are no numbers."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    if len(numbers) < len(values):
        return None
    if numbers == sorted(numbers):
        return "rises"
    return "falls" if numbers == sorted(numbers, reverse=True) else None


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return str(value)
