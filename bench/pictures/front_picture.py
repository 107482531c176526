"""The designs of an exploration and its front: two objectives against each other, the presets among them.

``python -m tilewright.bench.pictures.front_picture DIR FILE.svg`` draws the folder that ``tilewright explore -o DIR``
has written.
"""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from tilewright.bench.exploration.design_cost import title_of
from tilewright.bench.exploration.exploration_results import FRONT, TRIALS
from tilewright.bench.pictures.figure_file import figure, save

__all__ = ["front_picture", "main"]


def front_picture(trials: Sequence[Mapping[str, str]], front: Mapping[str, Any]) -> Figure:
    """Return the figure: each pair of neighbouring objectives, all designs within the limits, the front in colour."""
    objectives = front["exploration"]["objectives"]
    pairs = list(pairwise(objectives)) or [(objectives[0], objectives[0])]
    drawn = figure(4.6 * len(pairs), 3.6)
    for place, (first, second) in enumerate(pairs):
        axes = drawn.add_subplot(1, len(pairs), place + 1)
        found = [(float(row[first]), float(row[second]), int(row["front"])) for row in trials
                 if row[first] and row[second]]
        for best, colour, size, label in ((0, "#b8b8b8", 9, "other designs"), (1, "#1b6ca8", 26, "front")):
            mine = [point for point in found if point[2] == best]
            axes.scatter([point[0] for point in mine], [point[1] for point in mine], s=size, color=colour,
                         linewidths=0, label=f"{label} ({len(mine)})")
        axes.set(xscale="log", yscale="log", xlabel=title_of(first), ylabel=title_of(second))
        axes.legend(fontsize=7, frameon=False)
    drawn.suptitle(f"{', '.join(front['exploration']['networks'])}: {front['trials']} designs", fontsize=10)
    return drawn


def main(words: Sequence[str]) -> None:
    """Draw the exploration in the folder that the first word names into the file that the second one names."""
    folder, output = map(Path, words)
    with (folder / TRIALS).open(encoding="utf-8", newline="") as file:
        trials = list(csv.DictReader(file))
    save(front_picture(trials, json.loads((folder / FRONT).read_text(encoding="utf-8"))), output)


if __name__ == "__main__":
    main(sys.argv[1:])
