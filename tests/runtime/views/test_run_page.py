"""The page of a run in a browser: it draws every part, sorts, zooms, changes colours, and nothing complains."""

import pytest

from tests.support.accessibility import grave_findings
from tests.support.browser import opened
from tilewright.compiler.network.options import BEST
from tilewright.isa.machine import preset
from tilewright.runtime.advice.machine_changes import tried_changes
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_run import predict_model
from tilewright.runtime.views.run_page import run_page
from tilewright.tools.progress import Silence

_CYCLE = 1000


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    source = find_model("lenet5", Silence())
    run = run_model(source, preset("base"), "fast", None)
    tried = tried_changes(source, design_of("base"), BEST, run.report, Silence())
    file = tmp_path_factory.mktemp("page") / "run.html"
    file.write_text(run_page(run, "tilewright run lenet5 --html run.html", tried, "base"), encoding="utf-8")
    return file, run.report


@pytest.fixture(scope="module")
def deep_page(tmp_path_factory):
    """A network of blocks, whose values are not computed."""
    run = predict_model(find_model("resnet18-32", Silence()), design_of("base"), BEST, Silence())
    file = tmp_path_factory.mktemp("deep") / "run.html"
    file.write_text(run_page(run, "tilewright run resnet18-32"), encoding="utf-8")
    return file, run.report


def test_the_page_is_one_small_file_that_asks_for_nothing(page):
    text = page[0].read_text(encoding="utf-8")
    assert len(text) < 220_000
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
        canvas.scroll_into_view_if_needed()
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


def test_the_first_thing_told_is_what_costs_most_and_what_a_change_saves(page):
    file, report = page
    with opened(file) as (shown, complaints):
        rows = shown.locator("#costs li")
        assert 1 < rows.count() <= 5
        largest = shown.evaluate("data.costs.map(cost => cost.cycles)")
        assert largest == sorted(largest, reverse=True)
        assert sum(largest) + shown.evaluate("data.other_costs") == sum(layer.cycles for layer in report.layers)
        assert "--machine base,bus_bytes=16" in shown.locator("#costs").inner_text()
        rows.first.locator("button").first.click()
        assert shown.locator("#plan b").inner_text() == shown.evaluate("data.layers[data.costs[0].layers[0][0]].name")
        assert complaints == []


def test_search_filter_and_folding_change_list_network_and_timeline_alike(deep_page):
    file, report = deep_page
    rows, bars = "#layers tbody tr", "#network .layer"
    with opened(file) as (shown, complaints):
        every = len(report.layers)
        assert shown.locator(rows).count() == shown.locator(bars).count() == every
        shown.get_by_text("fold blocks").click()
        folded = shown.locator(rows).count()
        assert folded == shown.locator(bars).count() == shown.evaluate("timeline.bands.length") < every / 2
        cycles = shown.locator(f"{rows} td:nth-child(7)").all_inner_texts()
        assert sum(int(text.replace(",", "")) for text in cycles) == sum(layer.cycles for layer in report.layers)
        shown.locator(f"{bars}[aria-expanded=false]").first.click()
        assert folded < shown.locator(rows).count() < every
        shown.get_by_text("unfold", exact=True).click()
        name = report.layers[3].name
        shown.fill("#search", name)
        assert shown.locator(rows).count() == shown.locator(bars).count() >= 1
        assert all(name in text for text in shown.locator(f"{rows} td:first-child").all_inner_texts())
        assert shown.evaluate("timeline.bands.filter(band => band.dim).length") == every - shown.locator(rows).count()
        shown.fill("#search", "no such layer")
        assert shown.locator(rows).count() == 0
        shown.fill("#search", "")
        shown.select_option("#limit", index=1)
        assert 0 < shown.locator(rows).count() <= every
        assert complaints == []


def test_the_sums_of_an_interval_are_those_of_the_commands_in_it(page):
    file, report = page
    with opened(file) as (shown, complaints):
        first = report.layers[0].cycles
        for name, cycle in (("to", first), ("from", 0)):
            shown.get_by_label(f"Sum {name} cycle").fill(str(cycle))
            shown.keyboard.press("Tab")
        table = shown.locator("#timeline table.sum")
        assert f"{first:,} in all" in table.locator("caption").inner_text()
        under_way = shown.evaluate("""(end) => {
            const track = data.timeline.tracks.array;
            let at = 0;
            return track.begin.reduce((sum, step, index) => {
                at += step;
                return sum + Math.max(0, Math.min(end, at + track.length[index]) - at);
            }, 0); }""", first)
        (row,) = [text for text in table.locator("tbody tr").all_inner_texts() if text.startswith("array")]
        assert row.split("\t")[1] == f"{under_way:,}"
        assert complaints == []


@pytest.mark.parametrize("width", [400, 800, 1440])
def test_nothing_is_wider_than_the_window_and_letters_of_charts_are_as_large_as_elsewhere(deep_page, width):
    with opened(deep_page[0], width=width) as (shown, complaints):
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        for picture in ("stalls", "energy", "roofline", "memory", "buffers"):
            scale = shown.evaluate(f"""(() => {{ const svg = document.querySelector('#{picture} svg');
                return svg.getBoundingClientRect().width / svg.viewBox.baseVal.width; }})()""")
            assert scale > 0.9, picture
        if width == 1440:
            cells = "#layers tbody tr:first-child td:last-child"
            assert shown.evaluate(f"document.querySelector('{cells}').getBoundingClientRect().right") <= width
            assert "…" in shown.locator(cells).inner_text()
        assert complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page, deep_page, scheme):
    for file, _ in (page, deep_page):
        with opened(file, scheme) as (shown, _):
            assert grave_findings(shown) == []


def test_the_page_prints_on_a4_with_all_layers(deep_page, tmp_path):
    with opened(deep_page[0]) as (shown, _):
        shown.emulate_media(media="print")
        sheet = shown.pdf(format="A4", print_background=True)
        assert sheet.startswith(b"%PDF")
        shown.set_viewport_size({"width": 700, "height": 900})
        whole = "[...document.querySelectorAll('.scroll')].every(box => box.scrollHeight <= box.clientHeight + 2)"
        assert shown.evaluate(whole)
