"""The page of published networks: each network has a row or a line, by what became of it."""

from tests.support.markdown_tables import rows
from tilewright.bench.real_networks_page import NetworkFacts, clause, real_networks_page

CAUSE = {"operator": "Softmax", "reason": "too long", "way_out": "leave it out", "layers": 2, "cycles": 300,
         "share": 0.3}
RAN = {"cycles": 1000, "layers": {"conv": 3, "core": 2}, "core_share": 0.3, "causes": [CAUSE], "matches": True,
       "compared": 5, "loose": 1, "levels": 1}


def facts(name, **changed):
    return NetworkFacts(name=name, source="someone/somewhere", licence="MIT", **changed)


def test_what_ran_is_a_row():
    (row,) = rows(real_networks_page([facts("a", **RAN)]), "Networks")
    assert (row["network"], row["cycles"], row["core"]) == ("a", "1,000", "30.0 %")
    assert "3 conv, core 2 (Softmax)" in row["what runs where"]
    assert "4 tensors equal, 1 declared" in row["against ONNX Runtime"]


def test_what_the_core_is_busy_with_is_named_with_the_reason():
    page = real_networks_page([facts("a", **RAN), facts("b", **RAN | {"core_share": 0.1})])
    assert "**a**: 30 %" in page
    assert "too long" in page
    assert "**b**" not in page


def test_what_did_not_run_is_named():
    page = real_networks_page([facts("a", refused="Node 'x' is too large; make it smaller."),
                               facts("b", missing="b.onnx"), facts("c", crashed="KeyError: 'z'")])
    assert "Node 'x' is too large." in page
    assert "smaller" not in page
    assert "b.onnx" in page
    assert "KeyError" in page
    assert "0 of 3" in page


def test_a_difference_stands_out():
    page = real_networks_page([facts("a", **RAN | {"matches": False, "difference": "Layer 1"})])
    assert "**differs**" in page


def test_what_to_do_is_left_out_of_a_refusal():
    assert clause("Node 'x' is bad; mend it.") == clause("Node 'x' is bad") == "Node 'x' is bad"
    assert clause("Node 'x' is bad; the checker says: no; mend it") == "Node 'x' is bad; the checker says: no"
