"""A picture of an ablation as SVG: one bar per unit for each network and machine, as long as the unit's gain."""

from collections.abc import Iterator
from html import escape

from tilewright.bench.ablation.ablation import Ablation, AblationRow

__all__ = ["picture"]

_COLOURS = ("#1b6ca8", "#4fa3d1", "#d98324", "#7a9e4a", "#4d7a3a", "#8a8a8a", "#7b4b94")
_WIDTH, _LABEL, _FIGURE, _BAR, _TITLE, _GAP = 860, 170, 90, 16, 24, 12


def picture(found: Ablation) -> str:
    """Return the picture: by how many per cent more cycles each network takes without each unit."""
    groups: dict[tuple[str, str], list[AblationRow]] = {}
    for row in found.rows:
        groups.setdefault((row.model, row.machine), []).append(row)
    units = list(dict.fromkeys(row.unit for row in found.rows))
    most = max([0.01, *(row.speedup - 1 for row in found.rows if row.speedup is not None)])
    lines, y = [], _GAP
    for (model, machine), rows in groups.items():
        lines.append(f'<text x="4" y="{y + 14}" font-weight="bold">{escape(f"{model} on {machine}")}: '
                     "more cycles without</text>")
        y += _TITLE
        for row in rows:
            lines += _bar(row, y, most, _COLOURS[units.index(row.unit) % len(_COLOURS)])
            y += _BAR + 3
        y += _GAP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}">',
        "<style>text {font: 12px sans-serif}</style>", f'<rect width="{_WIDTH}" height="{y}" fill="white"/>', *lines,
        "</svg>", ""])


def _bar(row: AblationRow, y: int, most: float, colour: str) -> Iterator[str]:
    yield f'<text x="12" y="{y + 12}">{escape(row.unit)}</text>'
    if row.speedup is None:
        yield f'<text x="{_LABEL}" y="{y + 12}">does not compile</text>'
        return
    share = row.speedup - 1
    width = max(0.0, share) / most * (_WIDTH - _LABEL - _FIGURE)
    yield f'<rect x="{_LABEL}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>'
    yield f'<text x="{_LABEL + width + 5:.1f}" y="{y + 12}">{100 * share:+.1f} %</text>'
