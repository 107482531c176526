"""The figures of an exploration's page, drawn by plotly: planes of two measures, all axes, importance."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import combinations

import plotly.graph_objects as graphs

from tilewright.bench.explore_page.shown_exploration import ReferenceDesign, ShownDesign, ShownExploration, Value

__all__ = ["NamedFigure", "explore_figures", "tick_values"]

_FRONT, _OTHER, _REFERENCE, _LIMIT = "#2f7fc1", "#8d97a5", "#c9772b", "#c44e52"
_TEXT, _GRID = "#7a828e", "rgba(122,130,142,0.3)"
_HEIGHT = 480
_COLOURS = ("#2f7fc1", "#c9772b", "#3f9e5a", "#8b6cc1")


@dataclass(frozen=True, slots=True)
class NamedFigure:
    """A figure, its headline, and what it shows in words, for readers who cannot see it."""

    title: str
    words: str
    figure: graphs.Figure
    width: int = 0
    """Pixels that it needs, or 0."""


def explore_figures(shown: ShownExploration) -> list[NamedFigure]:
    """Return the figures of a page; none of designs where there is none."""
    found = []
    if shown.designs:
        names = list(shown.objectives)
        limited = [each.measure for each in shown.bounds if each.measure not in names]
        planes = [*combinations(names, 2)] or ([] if limited else [(names[0], "trial")])
        planes += [(names[0], each) for each in dict.fromkeys(limited)]
        found += [_plane(shown, across, up) for across, up in planes]
        found.append(_parallel(shown))
    if any(shown.importances.values()):
        found.append(_importance(shown))
    return found


def _at(design: ShownDesign | ReferenceDesign, name: str) -> float:
    if isinstance(design, ShownDesign) and name == "trial":
        return float(design.number)
    return design.measures.get(name, math.nan)


def _hover(shown: ShownExploration, design: ShownDesign) -> str:
    """Return what is shown of a design under the pointer: its name, its objectives, and what was chosen for it."""
    lines = [f"<b>{escape(design.name)}</b>",
             *(f"{escape(shown.titled(name))}: {design.measures[name]:,.6g}" for name in shown.objectives),
             *(f"{escape(name)} = {escape(str(value))}" for name, value in design.chosen.items())]
    return "<br>".join([*lines, "<i>click: copy its command</i>"])


def _plane(shown: ShownExploration, across: str, up: str) -> NamedFigure:
    figure = graphs.Figure()
    groups = (("other designs", _OTHER, 5, "circle", [each for each in shown.designs if not each.on_front]),
              ("front", _FRONT, 9, "circle", shown.front))
    for name, colour, size, symbol, group in groups:
        figure.add_trace(graphs.Scatter(
            x=[_at(each, across) for each in group], y=[_at(each, up) for each in group], mode="markers", name=name,
            marker={"color": colour, "size": size, "symbol": symbol}, text=[_hover(shown, each) for each in group],
            hoverinfo="text", customdata=[each.command for each in group]))
    references = [each for each in shown.references if across in each.measures and up in each.measures]
    for place, known in enumerate(references):
        figure.add_trace(graphs.Scatter(
            x=[_at(known, across)], y=[_at(known, up)], mode="markers+text", name=known.name, text=[known.name],
            textposition="top center" if place % 2 else "bottom center", hoverinfo="x+y+name",
            marker={"color": _REFERENCE, "size": 13, "symbol": "star" if place else "diamond"}))
    points: list[ShownDesign | ReferenceDesign] = [*shown.designs, *references]
    bounds = {axis: [each for each in shown.bounds if each.measure == axis] for axis in (across, up)}
    for each in bounds[across]:
        figure.add_vline(x=each.bound, line={"color": _LIMIT, "dash": "dash"},
                         annotation={"text": f"limit {each.sign} {each.bound:,.6g}", "font": {"color": _LIMIT}})
    for each in bounds[up]:
        figure.add_hline(y=each.bound, line={"color": _LIMIT, "dash": "dash"},
                         annotation={"text": f"limit {each.sign} {each.bound:,.6g}", "font": {"color": _LIMIT}})
    for update, axis in ((figure.update_xaxes, across), (figure.update_yaxes, up)):
        values = [value for point in points if not math.isnan(value := _at(point, axis))]
        values += [each.bound for each in bounds[axis]]
        update(title=shown.titled(axis), gridcolor=_GRID, zeroline=False, automargin=True,
               **_scale([value for value in values if value > 0] if axis != "trial" else None))
    words = (f"{len(shown.designs)} designs by {shown.titled(across)} and {shown.titled(up)}; the front has "
             f"{len(shown.front)}, " + "; ".join(f"{each.name} has {_at(each, across):,.4g} and {_at(each, up):,.4g}"
                                                for each in references))
    return NamedFigure(f"{across} and {up}", words.rstrip(", "), _styled(figure))


def _scale(values: Sequence[float] | None) -> dict[str, object]:
    """Return a logarithmic axis over ``values``, whose ticks are written out; a linear one without values."""
    if not values:
        return {"type": "linear"}
    low, high = min(values) / 1.15, max(values) * 1.15
    ticks = tick_values(low, high)
    return {"type": "log", "range": [math.log10(low), math.log10(high)], "tickvals": ticks,
            "ticktext": [_short(each) for each in ticks]}


def tick_values(low: float, high: float, most: int = 7) -> list[float]:
    """Return at most ``most`` round values between two positive ones, even on a logarithmic axis where they are far."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**power for power in powers for digit in digits if low <= digit * 10.0**power <= high]
        if 2 < len(found) <= most:
            return found
    if high / low > 10:     # many powers of ten: every so many of them
        found = [10.0**power for power in powers if low <= 10.0**power <= high]
        return found[::-(-len(found) // most)]
    step = next(digit * 10.0**power for power in range(math.floor(math.log10(high - low)) - 2, 400)
                for digit in (1, 2, 5) if (high - low) / (digit * 10.0**power) <= most - 1)
    return [number * step for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _short(value: float) -> str:
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.4g}{name}"
    return f"{value:.4g}"


def _parallel(shown: ShownExploration) -> NamedFigure:
    dimensions = []
    for name, values in shown.axes.items():
        places: dict[Value, int] = {value: place for place, value in enumerate(values)}
        dimensions.append({"label": name.replace("_", "<br>"), "range": [-0.2, max(1, len(places) - 1) + 0.2],
                           "values": [places[each.chosen[name]] for each in shown.designs],
                           "tickvals": list(places.values()), "ticktext": [f"{value}" for value in values]})
    for name in shown.objectives:
        found = [_at(each, name) for each in shown.designs]
        ticks = tick_values(max(min(found), 1e-9), max(max(found), 1e-9) * 1.001)
        dimensions.append({"label": shown.titled(name), "values": found, "tickvals": ticks,
                           "ticktext": [_short(each) for each in ticks]})
    figure = graphs.Figure(graphs.Parcoords(
        dimensions=dimensions, labelside="top", labelfont={"color": _TEXT, "size": 12},
        tickfont={"color": _TEXT, "size": 12}, rangefont={"color": "rgba(0,0,0,0)", "size": 1},
        line={"color": [int(each.on_front) for each in shown.designs], "colorscale": [[0, _OTHER], [1, _FRONT]],
              "cmin": 0, "cmax": 1}))
    width = max(600, 110 * len(dimensions))
    words = f"Each of {len(shown.designs)} designs is a line through its values on {len(dimensions)} axes"
    return NamedFigure("All designs, axis by axis", f"{words}; those of the front are blue.",
                       _styled(figure, top=70), width)


def _importance(shown: ShownExploration) -> NamedFigure:
    parts = shown.importances
    names = sorted({name for each in parts.values() for name in each},
                   key=lambda name: sum(each[name][0] for each in parts.values() if name in each))
    bars = []
    for place, (objective, each) in enumerate(parts.items()):
        found = [each.get(name, (0.0, 0.0, 0.0)) for name in names]
        bars.append(graphs.Bar(
            y=[name.replace("_", " ") for name in names], x=[mean for mean, _, _ in found], name=objective,
            orientation="h", marker={"color": _COLOURS[place % len(_COLOURS)]}, hovertemplate="%{y}: %{x:.1%}",
            error_x={"type": "data", "symmetric": False, "array": [max(0, high - mean) for mean, _, high in found],
                     "arrayminus": [max(0, mean - low) for mean, low, _ in found], "color": _TEXT, "thickness": 1.3}))
    figure = graphs.Figure(bars)
    figure.update_xaxes(title="share of the variance that it explains", tickformat=".0%", gridcolor=_GRID,
                        rangemode="tozero")
    figure.update_yaxes(automargin=True)
    words = "; ".join(f"{objective}: " + ", ".join(
        f"{name.replace('_', ' ')} {100 * each[name][0]:.0f} % ({100 * each[name][1]:.0f} to {100 * each[name][2]:.0f})"
        for name in sorted(each, key=lambda name: -each[name][0])[:3]) for objective, each in parts.items() if each)
    return NamedFigure("Importance of parameters", words, _styled(figure, height=140 + 22 * len(names) * len(parts)))


def _styled(figure: graphs.Figure, height: int = _HEIGHT, top: int = 40) -> graphs.Figure:
    """Return the figure in colours that are readable on light ground and on dark."""
    figure.update_layout(height=height, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
                         font={"color": _TEXT}, margin={"l": 60, "r": 30, "t": top, "b": 50},
                         hoverlabel={"align": "left"}, legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"})
    return figure
