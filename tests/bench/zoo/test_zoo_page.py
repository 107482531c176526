"""The page of published networks: each network has a row or a line, by what became of it."""

from tests.support.markdown_tables import rows
from tilewright.bench.zoo.zoo_list import Silicon
from tilewright.bench.zoo.zoo_page import NetworkFacts, clause, zoo_page

CAUSE = {"operator": "Softmax", "reason": "too long", "way_out": "leave it out", "layers": 2, "cycles": 300,
         "share": 0.3}
RAN = {"cycles": 1000, "layers": {"conv": 3, "core": 2}, "core_share": 0.3, "causes": [CAUSE], "matches": True,
       "compared": 5, "loose": 1, "levels": 1}


def facts(name, **changed):
    return NetworkFacts(name=name, source="someone/somewhere", licence="MIT", **changed)


def test_what_ran_is_a_row():
    (row,) = rows(zoo_page([facts("a", **RAN)]), "What runs where, and is it exact")
    assert (row["network"], row["cycles"], row["core"]) == ("a", "1,000", "30.0 %")
    assert "3 conv, core 2 (Softmax)" in row["what runs where"]
    assert "4 tensors equal, 1 declared" in row["against ONNX Runtime"]


COST = {"machine": "base", "refused": "", "cycles": 2000, "milliseconds": 0.01, "clock_mhz": 200.0, "energy_uj": 3.0,
        "core_share": 0.0, "core_operators": [], "weight_bytes": 70_000, "working_bytes": 4000, "bus_bytes": 80_000}


def test_each_preset_has_its_costs_and_silicon_stands_beside():
    page = zoo_page([facts("a", **RAN, macs=5_000_000, costs=[COST, COST | {"machine": "nano", "refused": "no"}],
                           accuracy=0.5, images=4)],
                    [Silicon(network="a", system="a chip", published="2 ms", cycles="200 k", clock="1 GHz",
                             source="its page", ours=["a", "b"])])
    (row,) = rows(page, "What they cost")
    assert (row["cycles, base"], row["ms, base"], row["weights, bytes"]) == ("2,000", "0.01", "70,000")
    assert "50.0 % of 4 images" in row["network"]
    assert (row["cycles, nano"], row["cycles, large"]) == ("–", "–")
    (silicon,) = rows(page, "Published silicon")
    assert (silicon["system"], silicon["published"]) == ("a chip", "2 ms")
    assert (silicon["our cycles, base"], silicon["our cycles, large"]) == ("2,000, –", "–, –")


def test_what_the_core_is_busy_with_is_named_with_the_reason():
    page = zoo_page([facts("a", **RAN), facts("b", **RAN | {"core_share": 0.1})])
    assert "**a**: 30 %" in page
    assert "too long" in page
    assert "**b**" not in page


def test_what_did_not_run_is_named():
    page = zoo_page([facts("a", refused="Node 'x' is too large; make it smaller."),
                               facts("b", missing="b.onnx"), facts("c", crashed="KeyError: 'z'")])
    assert "Node 'x' is too large." in page
    assert "smaller" not in page
    assert "b.onnx" in page
    assert "KeyError" in page
    assert "0 of 3" in page


def test_a_difference_stands_out():
    page = zoo_page([facts("a", **RAN | {"matches": False, "difference": "Layer 1"})])
    assert "**differs**" in page


def test_what_to_do_is_left_out_of_a_refusal():
    assert clause("Node 'x' is bad; mend it.") == clause("Node 'x' is bad") == "Node 'x' is bad"
    assert clause("Node 'x' is bad; the checker says: no; mend it") == "Node 'x' is bad; the checker says: no"
