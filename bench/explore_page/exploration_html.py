"""The page explore.html: one file, with plotly's JavaScript in it, that asks for nothing else."""

from html import escape
from pathlib import Path
from typing import Any

from tilewright.bench.explore_page.explore_figures import explore_figures
from tilewright.bench.explore_page.front_words import front_words
from tilewright.bench.explore_page.shown_exploration import ShownDesign, ShownExploration
from tilewright.runtime.views.run_page import page_of

__all__ = ["exploration_html"]

_FOLDER = Path(__file__).parent


def exploration_html(shown: ShownExploration) -> str:
    """Return the page of an exploration."""
    figures = explore_figures(shown)
    parts = [{"title": escape(each.title), "words": escape(each.words), "width": each.width,
              "html": each.figure.to_html(full_html=False, include_plotlyjs=number == 0, div_id=f"figure-{number}",
                                          config={"displayModeBar": False, "responsive": True})}
             for number, each in enumerate(figures)]
    varied = {name for name in shown.axes if len({str(each.chosen[name]) for each in shown.designs}) > 1}
    same = [f"{shown.titled(name)} {shown.designs[0].chosen[name]}" for name in shown.axes
            if name not in varied and shown.designs]
    data = {"title": shown.title, "heads": {name: shown.titled(name) for name in (*shown.objectives, *shown.axes)},
            "objectives": list(shown.objectives), "axes": [name for name in shown.axes if name in varied],
            "front": [_row(each) for each in shown.front]}
    return page_of(_FOLDER / "explore_page.html.j2", data, scripts=("drawing.js", _FOLDER / "explore_page.js"),
                   parts=parts, command=escape(shown.command), count=sum(shown.verdicts.values()),
                   verdicts=shown.verdicts, target=escape(shown.target), words=escape(front_words(shown)),
                   limits=[escape(f"{each.measure}{each.sign}{each.bound:.12g}") for each in shown.bounds],
                   meanings={escape(shown.titled(name)): escape(text) for name, text in shown.objectives.items()},
                   same=escape(", ".join(same)), references=[escape(each.name) for each in shown.references])


def _row(design: ShownDesign) -> dict[str, Any]:
    return {"name": design.name, "measures": dict(design.measures), "command": design.command,
            "chosen": {name: "yes" if value is True else "no" if value is False else value
                       for name, value in design.chosen.items()},
            "cycles": design.measured.get("cycles", "–"), "area": design.measured.get("area", "–")}
