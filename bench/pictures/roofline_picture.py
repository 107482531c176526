"""Rooflines of runs: every layer's multiply-accumulates per cycle over those per byte, under the limits of its machine.

``python -m tilewright.bench.pictures.roofline_picture REPORT.json... FILE.svg`` draws reports of ``tilewright run
--json``, beside one another.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tilewright.bench.pictures.figure_file import figure, save
from tilewright.isa.machine import Machine

__all__ = ["layer_points", "main", "roofline_picture"]

_COLOURS = {"conv23": "#1b6ca8", "conv": "#d98324", "pool": "#7a9e4a", "core": "#8a8a8a"}
"""By the instruction that computes a layer."""


def layer_points(report: Mapping[str, Any]) -> list[tuple[str, float, float, float]]:
    """Return instruction, MAC per byte, MAC per cycle and share of all cycles of each layer that has both.

    Layers that multiply nothing or whose tensors stay on chip are left out.
    """
    points = []
    for layer in report["layers"]:
        moved = layer["bytes_read"] + layer["bytes_written"]
        if layer["macs"] and moved:
            points.append((layer["algorithm"], layer["macs"] / moved, layer["macs"] / layer["cycles"],
                           layer["cycles"] / report["cycles"]))
    return points


def roofline_picture(reports: Sequence[Mapping[str, Any]]) -> Figure:
    """Return the figure: a part for each report, layers as circles that grow with their share of the cycles."""
    drawn = figure(3.6 * len(reports), 3.4)
    for place, report in enumerate(reports):
        _draw(drawn.add_subplot(1, len(reports), place + 1), report)
    return drawn


def _draw(axes: Axes, report: Mapping[str, Any]) -> None:
    machine = Machine(**report["design"]["machine"], name=report["machine"])
    points = layer_points(report)
    intensities = [point[1] for point in points] or [1.0]
    span = np.geomspace(min(0.5, *intensities) / 1.5, max(200.0, *intensities) * 1.5, 200)
    peaks = machine.peak_macs
    for name, peak in peaks.items():
        axes.plot(span, np.minimum(peak, span * machine.bus_bytes), color=_COLOURS.get(name, "#444444"), linewidth=1)
        axes.annotate(f"{name}: {peak:g}", (span[-1], peak), (0, 3), textcoords="offset points", ha="right",
                      va="bottom", fontsize=7, color=_COLOURS.get(name, "#444444"))
    for algorithm, colour in _COLOURS.items():
        mine = [point for point in points if point[0] == algorithm]
        if mine:
            axes.scatter([point[1] for point in mine], [point[2] for point in mine],
                         s=[12 + 600 * point[3] for point in mine], color=colour, alpha=0.55, linewidths=0,
                         label=f"{algorithm} ({len(mine)} layers)")
    axes.set(xscale="log", yscale="log", xlabel="multiply-accumulates per byte on the bus",
             ylabel="multiply-accumulates per cycle", title=f"{report['model']} on {report['machine']}")
    axes.legend(loc="lower right", fontsize=7, frameon=False, markerscale=0.5)


def main(words: Sequence[str]) -> None:
    """Draw the reports that ``words`` name into the file that the last of them names."""
    *reports, output = map(Path, words)
    save(roofline_picture([json.loads(path.read_text(encoding="utf-8")) for path in reports]), output)


if __name__ == "__main__":
    main(sys.argv[1:])
