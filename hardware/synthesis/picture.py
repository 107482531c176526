"""A picture of area by block: a bar for each design, of the shares of its parts, as SVG."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape

from tilewright.hardware.synthesis.synthesis_report import SynthesisReport

__all__ = ["PARTS", "part_of", "picture", "shares"]

PARTS = {
    "mac: lanes": "#1b6ca8", "mac: buffers": "#4fa3d1", "mac: other": "#a9d3ec", "post": "#d98324", "load": "#7a9e4a",
    "store": "#4d7a3a", "control": "#8a8a8a", "core": "#7b4b94",
}
"""Parts in the bars' order, and their colours."""

_LANES = ("mac: lanes", "mac: input transform", "mac: weight transform")
_BUFFERS = ("mac: activation buffer", "mac: weight memories")

_WIDTH, _LABEL, _BAR, _STEP, _LEGEND = 860, 210, 22, 34, 46
_SMALLEST_WITH_FIGURE = 0.045


def picture(reports: Sequence[SynthesisReport]) -> str:
    """Return the picture: of logic cells on an FPGA, of all area in standard cells."""
    height = _LEGEND + _STEP * len(reports) + 8
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}">',
             '<style>text {font: 12px sans-serif}</style>',
             f'<rect width="{_WIDTH}" height="{height}" fill="white"/>', *_legend()]
    for number, report in enumerate(reports):
        lines += _bar(report, _LEGEND + _STEP * number)
    return "\n".join([*lines, "</svg>", ""])


def shares(report: SynthesisReport) -> dict[str, float]:
    """Return the share of each part, in the bars' order; parts that a design lacks are left out."""
    sums: dict[str, float] = defaultdict(float)
    for block, resources in report.blocks.items():
        sums[part_of(block)] += report.size(resources)
    total = sum(sums.values())
    return {part: sums[part] / total for part in PARTS if sums[part]}


def part_of(block: str) -> str:
    """Return the part that a block of `area_blocks` is shown with, a key of ``PARTS``."""
    if block in _LANES:
        return "mac: lanes"
    if block in _BUFFERS:
        return "mac: buffers"
    unit = block.split(":")[0]
    return "mac: other" if unit == "mac" else unit


def _legend() -> Iterable[str]:
    x = _LABEL
    for part, colour in PARTS.items():
        yield f'<rect x="{x}" y="10" width="12" height="12" fill="{colour}"/>'
        yield f'<text x="{x + 16}" y="20">{part}</text>'
        x += 28 + 7 * len(part)
    yield '<text x="4" y="20">share of logic, or of area</text>'


def _bar(report: SynthesisReport, y: int) -> Iterable[str]:
    yield f'<text x="4" y="{y + 15}">{escape(f"{report.design}, {report.target}")}</text>'
    x = float(_LABEL)
    for part, share in shares(report).items():
        width = share * (_WIDTH - _LABEL - 8)
        yield (f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{PARTS[part]}">'
               f"<title>{part}: {100 * share:.1f} %</title></rect>")
        if share >= _SMALLEST_WITH_FIGURE:
            yield (f'<text x="{x + width / 2:.1f}" y="{y + 15}" text-anchor="middle" fill="white">'
                   f"{100 * share:.0f} %</text>")
        x += width
