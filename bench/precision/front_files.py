"""The front of bits and machines as files: front.json, a table of all points, a page, and a command for each row."""

import csv
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright._version import __version__
from tilewright.bench.exploration.design_cost import UNITS
from tilewright.bench.exploration.design_limits import Limit
from tilewright.bench.explore_page.exploration_html import exploration_html
from tilewright.bench.explore_page.shown_exploration import Bound, ShownDesign, ShownExploration
from tilewright.bench.precision.bits_cost import MEASURES, BitsPoint
from tilewright.bench.precision.precision_front import PrecisionFront
from tilewright.runtime.design.design import Design
from tilewright.tools.files import write_file

__all__ = ["FILES", "FrontReport", "machine_text", "row_of"]

FILES = ("front.json", "trials.csv", "explore.html")


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontReport:
    """A front, and what its files say beside it.

    Attributes
    ----------
    front : PrecisionFront
    model : str
        As it was typed.
    quantise : tuple of str
        Options of ``tilewright quantise`` that are the same for each row.
    run : tuple of str
        Options of ``tilewright run``, likewise.
    base : Design
        The machine that others are told by.
    command, target : str
    limits : tuple of Limit
        Points beyond one are not on the front.
    notes : tuple of str
    """

    front: PrecisionFront
    model: str
    quantise: tuple[str, ...]
    run: tuple[str, ...]
    base: Design
    command: str
    target: str
    limits: tuple[Limit, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> list[BitsPoint]:
        """The front within the limits."""
        return self.front.front(self.limits)

    def command_of(self, point: BitsPoint) -> str:
        """Return what gives a point's figures again."""
        made = "mixed.onnx"
        quantised = ["tilewright", "quantise", self.model, *self.quantise, *point.choice.options(), "-o", made]
        run = ["tilewright", "run", made, "--machine", machine_text(self.base, point.design), "--engine", "cycles",
               *self.run]
        return f"{shlex.join(quantised)} && {shlex.join(run)}"

    def to_json(self) -> dict[str, Any]:
        """Return everything, for programs."""
        return {"version": __version__, "command": self.command, "model": self.model, "target": self.target,
                "limits": [str(limit) for limit in self.limits], "notes": list(self.notes),
                "sensitivity": self.front.sensitivity(), "choices": len(self.front.errors),
                "points": [row_of(self.base, point) | {"command": self.command_of(point),
                                                       "design": point.design.to_json()} for point in self.points]}

    def write(self, folder: Path) -> None:
        """Write the files into a folder.

        Raises
        ------
        InputError
            If one cannot be written.
        """
        best = set(map(id, self.points))
        for name, text in zip(FILES, (json.dumps(self.to_json(), indent=2) + "\n", self._csv(best), self._page(best)),
                              strict=True):
            write_file(folder / name, text.encode())

    def _csv(self, best: set[int]) -> str:
        rows = [{"front": int(id(point) in best), **_flat(row_of(self.base, point))} for point in self.front.points]
        out = io.StringIO()
        writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()

    def _page(self, best: set[int]) -> str:
        shown = [ShownDesign(number=number, name=f"bits-{number:03d}", on_front=id(point) in best,
                             chosen=_chosen(self.base, point), measures=point.measures, command=self.command_of(point))
                 for number, point in enumerate(self.front.points)]
        axes: dict[str, dict[Any, None]] = {}
        for each in shown:
            for name, value in each.chosen.items():
                axes.setdefault(name, {})[value] = None
        return exploration_html(ShownExploration(
            title=f"Bits of the layers of {self.model}", command=self.command, target=self.target,
            objectives=MEASURES, units={**UNITS, "error": "%", "weight_bytes": "bytes"},
            axes={name: tuple(values) for name, values in axes.items()},
            designs=sorted(shown, key=lambda each: not each.on_front), references=[],
            bounds=[Bound(each.measure, each.sign, each.bound) for each in self.limits],
            verdicts={"good": len(shown)}, importances={name: {} for name in MEASURES}))


def row_of(base: Design, point: BitsPoint) -> dict[str, Any]:
    """Return a point's bits, machine and measures."""
    return {"machine": machine_text(base, point.design), **point.choice.to_json(),
            "distance": point.error.distance, **point.measures}


def machine_text(base: Design, design: Design) -> str:
    """Return a machine as ``--machine`` takes it: the one that the space starts from with what is changed."""
    first, machine = base.to_json()["machine"], design.to_json()["machine"]
    changed = [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in machine.items()
               if key != "name" and first[key] != value]
    return ",".join([base.machine.name, *changed])


def _chosen(base: Design, point: BitsPoint) -> dict[str, str]:
    return {"weights": _spaced(point.choice.weights), "inputs": _spaced(point.choice.activations),
            "machine": machine_text(base, point.design)}


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _spaced(value) if isinstance(value, list) else value for key, value in row.items()}


def _spaced(bits: Sequence[int]) -> str:
    return " ".join(map(str, bits))
