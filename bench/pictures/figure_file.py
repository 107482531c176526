"""Figures as SVG files: the same bytes for the same data, text as text, readable on light and dark pages."""

from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

__all__ = ["figure", "save"]

_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "tilewright", "font.family": "sans-serif", "font.size": 9,
          "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#e4e4e4",
          "axes.axisbelow": True}


def figure(width: float, height: float) -> Figure:
    """Return an empty figure of the given size in inches, on white."""
    matplotlib.rcParams.update(_STYLE)
    return Figure(figsize=(width, height), facecolor="white", layout="constrained")


def save(drawn: Figure, path: Path) -> None:
    """Write a figure.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    drawn.savefig(path, format="svg", metadata={"Date": None, "Creator": "tilewright"})
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")
