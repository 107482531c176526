"""The page of an exploration in a browser: every figure is drawn offline, and nothing complains."""

import pytest

from tests.bench.exploration.synthetic import FormulaWorkers, setup_for, space_of
from tests.support.browser import opened
from tilewright.bench.exploration.exploration import explore
from tilewright.bench.exploration.exploration_results import front_json, point_name
from tilewright.bench.exploration.exploration_study import ExplorationStudy
from tilewright.bench.exploration.explore_page import explore_page

SPACE = space_of(lanes=(1, 2, 4), bus_bytes=(4, 8, 16), activation_bytes=(16384, 65536), max_pooling=(True, False))

_HINTS = ("GPU stall", "WebGL", "Canvas2D")
"""In what the browser says of speed without a graphics card."""

_VOLUMES = "[...document.querySelectorAll('.js-plotly-plot')].filter(each => each.data[0].type === 'scatter3d').length"


def page_of(folder, objectives, trials=30):
    study = ExplorationStudy(folder, setup_for(SPACE, objectives=objectives))
    explore(study, FormulaWorkers(), trials, lambda _: None)
    content = front_json(study.setup, study.finished(), study.front(), {}, "tilewright explore <net>")
    page = folder / "explore.html"
    page.write_text(explore_page(study.setup, study.finished(), content, study.importances()), encoding="utf-8")
    return page, study


@pytest.mark.parametrize(("objectives", "planes", "volumes"), [
    (("cycles", "area"), 1, 0),
    pytest.param(("cycles", "energy", "area"), 3, 1, marks=pytest.mark.slow)])  # drawn without a graphics card
def test_front_axes_and_importance_are_drawn(tmp_path, objectives, planes, volumes):
    page, study = page_of(tmp_path, objectives)
    with opened(page) as (shown, complaints):
        front = shown.locator("#front tbody tr")
        assert front.count() == len(study.front())
        assert shown.locator(".js-plotly-plot .cartesianlayer .scatterlayer").count() == planes
        assert shown.evaluate(_VOLUMES) == volumes
        assert shown.locator(".js-plotly-plot .parcoords").count() >= 1
        assert shown.locator(".js-plotly-plot .barlayer .point").count() == len(objectives) * len(SPACE.axes)
        marks = shown.evaluate("document.getElementById('figure-0').data.map(each => each.x.length)")
        assert sum(marks) == len(study.finished())
        hover = shown.evaluate("document.getElementById('figure-0').data[1].text")
        best = study.front()[0]
        assert any(point_name(study.setup, best.number) in each and "max_pooling" in each for each in hover)
        assert [each for each in complaints if not any(hint in each for hint in _HINTS)] == []


def test_an_exploration_without_a_design_has_a_page_too(tmp_path):
    study = ExplorationStudy(tmp_path, setup_for(SPACE))
    content = front_json(study.setup, [], [], {}, "tilewright explore <net>")
    page = explore_page(study.setup, [], content, {})
    assert "tilewright explore &lt;net&gt;" in page
