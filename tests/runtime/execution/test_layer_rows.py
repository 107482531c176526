"""The layers of a run as CSV: a row each, with the figures of the report."""

import csv
import json

from tests.cli.test_app import invoke, refused


def test_a_row_for_each_layer(tmp_path):
    done = invoke("run", "lenet5", "--engine", "cycles", "--csv", tmp_path / "layers.csv", "--json",
                  tmp_path / "run.json")
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "run.json").read_text())
    with open(tmp_path / "layers.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["layer"] for row in rows] == [layer["name"] for layer in report["layers"]]
    for row, layer in zip(rows, report["layers"], strict=True):
        for key in ("macs", "cycles", "bytes_read", "bytes_written"):
            assert int(row[key]) == layer[key]
        assert abs(float(row["energy_uj"]) - layer["energy_uj"]) <= 1e-5 * layer["energy_uj"]
        assert int(row["main_stall_cycles"]) == layer["stalls"][row["main_stall"]]
        assert row["onnx_nodes"].split(";") == layer["onnx_nodes"]
        assert row["why_core"] == ""


def test_a_place_that_cannot_be_written_is_refused_at_once(tmp_path):
    assert "no-such" in refused(2, "run", "lenet5", "--csv", tmp_path / "no-such" / "layers.csv")
