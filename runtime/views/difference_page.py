"""The page of two runs beside each other: totals, the design's changes, and each layer's cycles, bytes and energy."""

from pathlib import Path
from typing import Any

from tilewright.runtime.compare.report_difference import LayerDifference, LayerSide, ReportDifference
from tilewright.runtime.views.run_page import page_of

__all__ = ["difference_page"]

_UNITS = {"cycles": "cycles", "milliseconds": "time, ms", "bytes": "memory, bytes", "energy_uj": "energy, µJ",
          "milliwatts": "power, mW"}


def difference_page(found: ReportDifference, command: str) -> str:
    """Return the page of ``found``; ``command`` is the one that gives it again."""
    data = {
        "title": f"{found.first} and {found.second}", "first": found.first, "second": found.second, "command": command,
        "totals": [{"name": _UNITS[each.name], "first": each.first, "second": each.second, "ratio": each.ratio}
                   for each in found.totals],
        "design": [dict(zip(("key", "first", "second"), _parts(each), strict=True)) for each in found.design],
        "layers": [_layer(each) for each in found.layers]}
    return page_of(Path(__file__).with_name("difference_page.html.j2"), data,
                   scripts=("drawing.js", "difference_page.js"))


def _parts(change: str) -> tuple[str, str, str]:
    """Return key and values of a change of a design, ``key: first → second``."""
    key, _, values = change.partition(": ")
    first, _, second = values.partition(" → ")
    return key, first, second


def _layer(layer: LayerDifference) -> dict[str, Any]:
    return {"name": layer.name, "first": _side(layer.first), "second": _side(layer.second),
            "changes": "; ".join(layer.changes)}


def _side(side: LayerSide | None) -> dict[str, float] | None:
    return None if side is None else {"cycles": side.cycles, "bytes": side.bytes, "energy": side.energy_uj}
