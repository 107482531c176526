"""``tilewright diff``: reports and designs, alone and mixed."""

import json

import pytest

from tests.cli.test_app import invoke, refused


def test_a_report_beside_a_design(tmp_path):
    stored, path = tmp_path / "run.json", tmp_path / "diff.json"
    assert invoke("run", "lenet5", "--engine", "cycles", "--machine", "nano", "--json", stored).exit_code == 0
    done = invoke("diff", stored, "base", "--model", "lenet5", "--memory", "latency=100", "--json", path)
    assert done.exit_code == 0, done.output
    found = json.loads(path.read_text())
    assert found["totals"]["cycles"]["first"] == json.loads(stored.read_text())["cycles"]
    assert found["totals"]["cycles"]["ratio"] < 1
    assert "memory.latency_cycles: 20 → 100" in found["design"]
    assert len(found["layers"]) == 5


@pytest.mark.parametrize(("words", "fact"), [
    (["base", "nano"], "--model"), (["none.json", "none.json"], "none.json"),
    (["base,lanes=5", "nano", "--model", "lenet5"], "5"),
])
def test_what_cannot_be_compared_is_refused(words, fact):
    assert fact in refused(2, "diff", *words)
