"""The page explore.html: the front, all designs and the importance of parameters, drawn by plotly in one file."""

from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations
from pathlib import Path
from typing import Any

import plotly.graph_objects as graphs

from tilewright.bench.exploration.design_cost import OBJECTIVES, Verdict, title_of
from tilewright.bench.exploration.exploration_results import parameters_of, point_name
from tilewright.bench.exploration.exploration_study import FinishedTrial, StudySetup
from tilewright.tools.templates import render

__all__ = ["explore_page"]

_TEMPLATE = Path(__file__).with_name("explore_page.html.j2")
_FRONT, _OTHER, _TEXT, _GRID = "#1b6ca8", "#9aa4b2", "#7a828e", "rgba(122,130,142,0.3)"
_HEIGHT = 520


def explore_page(setup: StudySetup, trials: Sequence[FinishedTrial], content: Mapping[str, Any],
                 importances: Mapping[str, Mapping[str, float]]) -> str:
    """Return an exploration as one HTML file that asks for nothing else.

    Parameters
    ----------
    setup : StudySetup
    trials : sequence of FinishedTrial
    content : mapping
        As `exploration_results.front_json` returns it.
    importances : mapping of str to mapping
        As `ExplorationStudy.importances` returns them.
    """
    front = {point["trial"] for point in content["points"]}
    good = [each for each in trials if each.outcome.verdict is Verdict.good]
    figures: list[tuple[str, graphs.Figure]] = []
    if good:
        planes = list(combinations(setup.objectives, 2)) or [(setup.objectives[0], "trial")]
        figures += [(f"{across} and {up}", _plane(setup, good, front, across, up)) for across, up in planes]
        if len(setup.objectives) >= 3:
            figures.append((", ".join(setup.objectives[:3]), _volume(setup, good, front)))
        figures.append(("All designs, axis by axis", _parallel(setup, good)))
    if any(importances.values()):
        figures.append(("Importance of parameters", _importance(importances)))
    parts = [(title, each.to_html(full_html=False, include_plotlyjs=number == 0, div_id=f"figure-{number}",
                                  config={"displaylogo": False, "responsive": True}))
             for number, (title, each) in enumerate(figures)]
    return render(_TEMPLATE, title=escape(f"Exploration of {', '.join(setup.networks)}"), parts=parts,
                  command=escape(content["command"]), count=content["trials"], verdicts=content["verdicts"],
                  limits=[escape(str(limit)) for limit in setup.limits], objectives=setup.objectives,
                  meanings={name: OBJECTIVES[name] for name in setup.objectives}, target=setup.target,
                  points=[_row(point, setup.objectives) for point in content["points"]])


def _row(point: Mapping[str, Any], objectives: Sequence[str]) -> dict[str, Any]:
    """Return what the table shows of a point of the front."""
    verified = point["verified"] or {}
    return {"name": point["name"], "measures": [f"{point['measures'][name]:,.5g}" for name in objectives],
            "cycles": _measured(verified.get("cycles"), verified.get("rtl_error")),
            "area": _measured((verified.get("area") or {}).get("area"), verified.get("synthesis_error"))}


def _measured(pair: Mapping[str, float] | None, error: str | None) -> str:
    return escape(error or "–") if pair is None else f"{pair['measured']:,.6g} ({pair['error']:+.2%})"


def _hover(setup: StudySetup, trial: FinishedTrial) -> str:
    """Return what is shown of a design under the pointer: its name, its objectives, and what was chosen for it."""
    parameters = parameters_of(setup, trial.choice)
    chosen = {name: parameters.get(name, value) for name, value in trial.choice.items()}
    lines = [f"<b>{escape(point_name(setup, trial.number))}</b>",
             *(f"{name}: {trial.outcome.measures[name]:,.6g}" for name in setup.objectives),
             *(f"{name} = {escape(str(value))}" for name, value in chosen.items())]
    return "<br>".join(lines)


def _at(trial: FinishedTrial, name: str) -> float:
    return float(trial.number) if name == "trial" else trial.outcome.measures[name]


def _groups(trials: Sequence[FinishedTrial], front: set[int]) -> tuple[tuple[str, str, int, list[FinishedTrial]], ...]:
    """Return name, colour, size of marks and trials of what is beaten, and of the front."""
    return (("other designs", _OTHER, 5, [each for each in trials if each.number not in front]),
            ("front", _FRONT, 9, [each for each in trials if each.number in front]))


def _plane(setup: StudySetup, trials: Sequence[FinishedTrial], front: set[int], across: str, up: str
           ) -> graphs.Figure:
    figure = graphs.Figure()
    for name, colour, size, group in _groups(trials, front):
        figure.add_trace(graphs.Scatter(
            x=[_at(each, across) for each in group], y=[_at(each, up) for each in group], mode="markers", name=name,
            marker={"color": colour, "size": size}, text=[_hover(setup, each) for each in group], hoverinfo="text"))
    axis = {"gridcolor": _GRID, "zeroline": False}
    figure.update_xaxes(title=title_of(across), type="log", **axis)
    figure.update_yaxes(title=title_of(up), type="linear" if up == "trial" else "log", **axis)
    return _styled(figure)


def _volume(setup: StudySetup, trials: Sequence[FinishedTrial], front: set[int]) -> graphs.Figure:
    names = setup.objectives[:3]
    figure = graphs.Figure()
    for name, colour, size, group in _groups(trials, front):
        x, y, z = ([_at(each, axis) for each in group] for axis in names)
        figure.add_trace(graphs.Scatter3d(
            x=x, y=y, z=z, mode="markers", name=name, marker={"color": colour, "size": size / 2},
            text=[_hover(setup, each) for each in group], hoverinfo="text"))
    axes = [{"title": {"text": title_of(each)}, "type": "log", "gridcolor": _GRID} for each in names]
    figure.update_scenes(xaxis=axes[0], yaxis=axes[1], zaxis=axes[2])
    return _styled(figure, height=_HEIGHT + 160)


def _parallel(setup: StudySetup, trials: Sequence[FinishedTrial]) -> graphs.Figure:
    dimensions = []
    for name, values in setup.space.axes.items():
        places = {value: place for place, value in enumerate(values)}
        dimensions.append({"label": name, "values": [places[each.choice[name]] for each in trials],
                           "tickvals": list(places.values()), "ticktext": [f"{value}" for value in values]})
    for name in setup.objectives:
        dimensions.append({"label": title_of(name), "values": [_at(each, name) for each in trials]})
    first = [_at(each, setup.objectives[0]) for each in trials]
    figure = graphs.Figure(graphs.Parcoords(
        dimensions=dimensions, labelangle=-25, labelside="bottom",
        line={"color": first, "colorscale": "Viridis", "showscale": True,
              "colorbar": {"title": {"text": title_of(setup.objectives[0])}}}))
    return _styled(figure, bottom=130)


def _importance(importances: Mapping[str, Mapping[str, float]]) -> graphs.Figure:
    names = sorted({name for each in importances.values() for name in each},
                   key=lambda name: sum(each.get(name, 0.0) for each in importances.values()))
    figure = graphs.Figure([graphs.Bar(
        y=names, x=[each.get(name, 0.0) for name in names], name=objective, orientation="h",
        hovertemplate="%{y}: %{x:.1%}") for objective, each in importances.items()])
    figure.update_xaxes(title="share of the variance that it explains", tickformat=".0%", gridcolor=_GRID)
    figure.update_yaxes(automargin=True)
    return _styled(figure, height=120 + 36 * len(names))


def _styled(figure: graphs.Figure, height: int = _HEIGHT, bottom: int = 60) -> graphs.Figure:
    """Return the figure in colours that are readable on light ground and on dark."""
    figure.update_layout(height=height, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
                         font={"color": _TEXT}, margin={"l": 90, "r": 30, "t": 40, "b": bottom},
                         hoverlabel={"align": "left"})
    return figure
