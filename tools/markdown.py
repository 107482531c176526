"""Markdown tables, and number formats of the generated pages."""

from collections.abc import Iterable, Sequence

__all__ = ["change", "cut", "digits", "percent", "table"]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, left: int | None = 1) -> str:
    """Return a Markdown table; the first ``left`` columns are text, the others numbers; None aligns none."""
    marks = ["---" if left is None else ":--" if i < left else "--:" for i in range(len(heads))]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, marks, *rows))


def digits(value: float) -> str:
    """Return a number with at least three digits."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def change(new: float, old: float) -> str:
    """Return by how much ``new`` differs from ``old``, in per cent."""
    return f"{100 * (new / old - 1):+.1f} %"


def cut(new: float, old: float) -> str:
    """Return the share of ``old`` that ``new`` saves, with at least three digits of the remaining share."""
    left = 100 * new / old
    return f"{100 - left:.{1 if left >= 10 else 2 if left >= 1 else 3}f} %"


def percent(share: float, digits: int = 0) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.{digits}f} %"
