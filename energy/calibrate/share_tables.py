"""Tables and shares in the pages that a calibration writes."""

from collections.abc import Iterable, Sequence


def percent(share: float, digits: int = 0) -> str:
    """Return a share as a text."""
    return f"{100 * share:.{digits}f} %"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
