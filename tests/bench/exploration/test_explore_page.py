"""The page of an exploration in a browser: every figure is drawn offline, and nothing complains."""

import pytest

from tests.bench.exploration.synthetic import FormulaWorkers, setup_for, space_of
from tests.support.accessibility import grave_findings
from tests.support.browser import opened
from tilewright.bench.exploration.exploration import explore
from tilewright.bench.exploration.exploration_results import front_json, point_name
from tilewright.bench.exploration.exploration_study import ExplorationStudy
from tilewright.bench.exploration.explore_page import explore_page
from tilewright.runtime.design.design_flags import design_of

SPACE = space_of(lanes=(1, 2, 4), bus_bytes=(4, 8, 16), activation_bytes=(16384, 65536), max_pooling=(True, False))

_HINTS = ("GPU stall", "WebGL", "Canvas2D")
"""In what the browser says of speed without a graphics card."""

_START = {"name": "base", "measures": {"cycles": 90_000.0, "area": 0.4, "energy": 50_000.0, "mult18": 40.0}}


def page_of(folder, objectives, trials=30, limits=()):
    study = ExplorationStudy(folder, setup_for(SPACE, objectives=objectives, limits=limits))
    explore(study, FormulaWorkers(), trials, lambda _: None)
    content = front_json(study.setup, study.finished(), study.front(), {}, "tilewright explore <net>")
    page = folder / "explore.html"
    page.write_text(explore_page(study.setup, study.finished(), content | {"start": _START}, study.importance_ranges()),
                    encoding="utf-8")
    return page, study


@pytest.mark.parametrize(("objectives", "planes"), [
    (("cycles", "area"), 1),
    pytest.param(("cycles", "energy", "area"), 3, marks=pytest.mark.slow)])     # drawn without a graphics card
def test_front_axes_and_importance_are_drawn_and_named(tmp_path, objectives, planes):
    page, study = page_of(tmp_path, objectives)
    with opened(page) as (shown, complaints):
        assert shown.locator("#front tbody tr").count() == len(study.front())
        assert shown.locator(".js-plotly-plot .cartesianlayer .scatterlayer").count() == planes
        assert shown.locator(".js-plotly-plot .parcoords").count() >= 1
        assert shown.locator(".js-plotly-plot .barlayer .point").count() == len(objectives) * len(SPACE.axes)
        assert shown.locator(".js-plotly-plot .errorbar path.xerror").count() > 0
        marks = shown.evaluate("document.getElementById('figure-0').data.slice(0, 2).map(each => each.x.length)")
        assert sum(marks) == len(study.finished())
        hover = shown.evaluate("document.getElementById('figure-0').data[1].text")
        best = study.front()[0]
        assert any(point_name(study.setup, best.number) in each and "max_pooling" in each for each in hover)
        names = shown.evaluate("[...document.querySelectorAll('.js-plotly-plot')].map(each => each.ariaLabel)")
        assert len(names) == planes + 2
        assert all(len(name) > 20 for name in names)
        assert [each for each in complaints if not any(hint in each for hint in _HINTS)] == []


def test_start_and_limits_are_drawn_where_they_have_an_axis(tmp_path):
    page, _ = page_of(tmp_path, ("cycles", "area"), limits=("mult18<=100", "area<=0.9"))
    with opened(page) as (shown, _):
        drawn = shown.evaluate("""[...document.querySelectorAll('.js-plotly-plot')].map(each => [
            each.data.map(trace => trace.name), (each.layout.shapes || []).length])""")
        assert drawn[0][0] == ["other designs", "front", "base"]
        assert [count for _, count in drawn[:2]] == [1, 1]     # area in the first plane, mult18 in the second
        assert "mult18" in shown.locator("h2").all_inner_texts()[2]


def test_the_table_has_parameters_sorts_and_copies_the_command_of_a_design(tmp_path):
    page, _ = page_of(tmp_path, ("cycles", "area"))
    with opened(page) as (shown, complaints):
        heads = shown.locator("#front th").all_inner_texts()
        assert {"lanes", "bus bytes, bytes", "activation bytes, bytes"} <= set(heads)
        lanes = heads.index("lanes")
        shown.locator("#front th").nth(lanes).click()
        values = [int(text) for text in shown.locator(f"#front td:nth-child({lanes + 1})").all_inner_texts()]
        assert values == sorted(values, reverse=True)
        shown.locator("#front td button").first.click()
        shown.wait_for_function("document.getElementById('copied').textContent !== ''")
        assert "tilewright run net --machine designs/small-" in shown.locator("#copied").inner_text()
        for design in shown.evaluate("document.getElementById('figure-0').data[0].customdata")[:5]:
            assert design_of(design.partition("--machine ")[2].split(" ")[0]).machine.lanes in (1, 2, 4)
        assert [each for each in complaints if not any(hint in each for hint in _HINTS)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_window(tmp_path, scheme):
    page, _ = page_of(tmp_path, ("cycles", "area"))
    with opened(page, scheme, width=400) as (shown, _):
        assert grave_findings(shown) == []
        assert shown.evaluate("document.documentElement.scrollWidth") <= 400


def test_an_exploration_without_a_design_has_a_page_too(tmp_path):
    study = ExplorationStudy(tmp_path, setup_for(SPACE))
    content = front_json(study.setup, [], [], {}, "tilewright explore <net>")
    page = explore_page(study.setup, [], content, {})
    assert "tilewright explore &lt;net&gt;" in page
