"""Two reports side by side: layers by name, totals that are the reports', and files that are none."""

import json

import pytest

from tilewright.errors import InputError
from tilewright.runtime.compare.report_difference import compare_reports, predicted_side, read_side
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.predicted_network import PredictedNetwork


@pytest.fixture(scope="module")
def sides():
    network = PredictedNetwork.named("lenet5")
    return [predicted_side(network, design_of(text)) for text in ("base", "large")]


def layer(name, cycles):
    return {"name": name, "cycles": cycles, "bytes_read": 3, "bytes_written": 4, "energy_uj": 0.5, "stalls": {}}


def report(*layers):
    return {"model": "net", "machine": "base", "cycles": 9, "milliseconds": 1.0, "milliwatts": 2.0,
            "layers": list(layers)}


def test_a_report_and_itself_differ_in_nothing(sides):
    found = compare_reports(sides[0], sides[0])
    assert {each.ratio for each in found.totals} == {1.0}
    assert not any(each.changes for each in found.layers)
    assert not found.design


def test_totals_and_layers_are_the_reports(sides):
    found = compare_reports(*sides)
    totals = {each.name: each for each in found.totals}
    assert (totals["cycles"].first, totals["cycles"].second) == tuple(side["cycles"] for side in sides)
    assert totals["energy_uj"].second == sides[1]["energy"]["total_uj"]
    assert [each.name for each in found.layers] == [each["name"] for each in sides[0]["layers"]]
    assert [each.second.cycles for each in found.layers] == [each["cycles"] for each in sides[1]["layers"]]
    assert "machine.lanes: 8 → 32" in found.design
    assert any(each.startswith("tiles: ") for each in found.layers[0].changes)


def test_layers_of_one_side_stand_where_they_are():
    found = compare_reports(report(layer("a", 1), layer("b", 2), layer("b", 3)),
                            report(layer("a", 1), layer("x", 5), layer("b", 2)))
    assert [each.name for each in found.layers] == ["a", "x", "b", "b"]
    alone = [each for each in found.layers if each.first is None or each.second is None]
    assert [each.changes for each in alone] == [("only in the second",), ("only in the first",)]


@pytest.mark.parametrize("text", ["[]", "{", "{}", json.dumps(report({"name": "a"})), json.dumps(report()), "[" * 9999])
def test_what_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"report\.json"):
        read_side(path)
