"""The page of a run in a browser: it draws every part, sorts, zooms, changes colours, and nothing complains."""

import pytest

from tests.support.browser import opened
from tilewright.isa.machine import preset
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import find_model
from tilewright.runtime.views.run_page import run_page
from tilewright.tools.progress import Silence

_CYCLE = 1000


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    run = run_model(find_model("lenet5", Silence()), preset("base"), "fast", None)
    file = tmp_path_factory.mktemp("page") / "run.html"
    file.write_text(run_page(run, "tilewright run lenet5 --html run.html"), encoding="utf-8")
    return file, run.report


def test_the_page_is_one_small_file_that_asks_for_nothing(page):
    text = page[0].read_text(encoding="utf-8")
    assert len(text) < 200_000
    for outside in ("src=", "@import", "fetch(", "http://", "https://"):
        assert outside not in text.replace("http://www.w3.org/2000/svg", ""), outside


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_part_is_drawn_in_light_and_dark(page, scheme):
    file, report = page
    with opened(file, scheme) as (shown, complaints):
        assert shown.locator("#layers tbody tr").count() == len(report.layers)
        assert shown.locator("#network .layer").count() == len(report.layers)
        assert shown.locator("#roofline circle.point").count() == len(report.layers)
        for part in ("stalls", "energy", "memory", "buffers"):
            assert shown.locator(f"#{part} svg").count() == 1, part
        assert f"{report.cycles:,}" in shown.locator("#figures").inner_text()
        assert "tilewright run lenet5" in shown.locator("#command").inner_text()
        ground = shown.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
        assert complaints == []


def test_a_click_on_a_head_sorts_and_a_second_turns_the_order(page):
    file, report = page
    cycles = [f"{layer.cycles:,}" for layer in sorted(report.layers, key=lambda layer: -layer.cycles)]
    with opened(file) as (shown, complaints):
        head = shown.locator("#layers th", has_text="cycles").first
        column = "#layers tbody tr td:nth-child(7)"
        head.click()
        assert shown.locator(column).all_inner_texts() == cycles
        head.click()
        assert shown.locator(column).all_inner_texts() == cycles[::-1]
        assert head.get_attribute("aria-sort") == "ascending"
        assert complaints == []


def test_the_timeline_zooms_from_the_network_to_one_command(page):
    file, report = page
    with opened(file) as (shown, complaints):
        span = "timeline.to - timeline.from"
        assert shown.evaluate(span) == report.cycles
        canvas = shown.locator("#timeline canvas")
        box = canvas.bounding_box()
        canvas.click(position={"x": 100, "y": 30})                  # a layer
        assert shown.evaluate(span) == report.layers[0].cycles
        shown.mouse.move(box["x"] + 400, box["y"] + 30 + 30 * 3)
        for _ in range(12):
            shown.mouse.wheel(0, -100)
        shown.wait_for_function(f"{span} < {_CYCLE}")
        canvas.click(position={"x": 400, "y": 30 + 30 * 3})         # a command of the array
        assert "array: conv" in shown.locator("#timeline .detail").inner_text()
        canvas.dblclick(position={"x": 300, "y": 10})
        assert shown.evaluate(span) == report.cycles
        assert complaints == []


def test_a_click_on_a_layer_shows_its_plan_and_the_button_changes_colours(page):
    with opened(page[0]) as (shown, complaints):
        shown.locator("#network .layer").nth(1).click()
        assert page[1].layers[1].name in shown.locator("#plan").inner_text()
        shown.click("#theme")
        assert shown.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert complaints == []
