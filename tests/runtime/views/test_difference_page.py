"""The page of two runs shows both sides of each layer, searches and sorts them, and passes axe-core."""

import pytest

from tests.support.accessibility import grave_findings
from tests.support.browser import opened
from tilewright.runtime.compare.report_difference import compare_reports, predicted_side
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.runtime.views.difference_page import difference_page


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    network = PredictedNetwork.named("lenet5")
    found = compare_reports(*(predicted_side(network, design_of(text)) for text in ("base", "base,bus_bytes=16")))
    file = tmp_path_factory.mktemp("difference") / "diff.html"
    file.write_text(difference_page(found, "tilewright diff <a> <b>"), encoding="utf-8")
    return file, found


def test_both_sides_of_each_layer_are_shown_and_searched(page):
    file, found = page
    with opened(file) as (shown, complaints):
        assert shown.locator("#layers tbody tr").count() == len(found.layers)
        assert shown.locator("#pairs rect").count() == 2 * len(found.layers)
        row = shown.locator("#layers tbody tr").first.inner_text()
        assert f"{found.layers[0].first.cycles:,}" in row
        assert f"{found.layers[0].second.cycles:,}" in row
        assert "machine.bus_bytes" in shown.locator("#design").inner_text()
        cycles = next(each for each in found.totals if each.name == "cycles")
        assert f"{cycles.first:,} → {cycles.second:,}" in shown.locator("#figures").inner_text()
        shown.fill("#search", found.layers[1].name)
        assert shown.locator("#layers tbody tr").count() == 1
        shown.fill("#search", "")
        shown.select_option("#order", "gain")
        saved = [layer.first.cycles - layer.second.cycles for layer in found.layers]
        best = found.layers[saved.index(max(saved))].name
        assert shown.locator("#layers tbody td").first.inner_text() == best
        assert complaints == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_window(page, scheme):
    with opened(page[0], scheme, width=400) as (shown, _):
        assert grave_findings(shown) == []
        assert shown.evaluate("document.documentElement.scrollWidth") <= 400
