"""``--batch``: what is run, written and refused with several images."""

import json

import numpy as np
import pytest

from tests.cli.test_app import invoke, refused
from tilewright import InferenceSession, Options
from tilewright.models import builtin, data


def test_run_reports_cycles_per_image(tmp_path):
    invoke("run", "lenet5", "--machine", "nano", "--batch", "3", "--json", str(tmp_path / "report.json"))
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["images"], report["matches_reference"]) == (3, True)
    assert report["cycles_per_image"] == report["cycles"] / 3
    assert report["inferences_per_second"] == pytest.approx(3e3 / report["milliseconds"])
    invoke("run", "lenet5", "--machine", "nano", "--json", str(tmp_path / "one.json"))
    one = json.loads((tmp_path / "one.json").read_text())
    assert one["images"] == 1
    assert report["macs"] == 3 * one["macs"]
    assert report["cycles_per_image"] < 0.9 * one["cycles"]


def test_a_compiled_batch_is_simulated_with_an_output_for_each_image(tmp_path):
    digits = data.samples().images[:2]
    folder, given, written = tmp_path / "lenet5", tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(given, image=digits)
    invoke("compile", "lenet5", "--machine", "nano", "--batch", "2", "-o", str(folder))
    invoke("simulate", str(folder), "--input", str(given), "--output", str(written))
    logits = np.load(written)["logits"]
    session = InferenceSession(builtin("lenet5"), "nano")
    np.testing.assert_array_equal(logits, session.run(None, {"image": digits})[0])
    batch = InferenceSession(builtin("lenet5"), "nano", options=Options(batch=2))
    assert [each.shape for each in (*batch.get_inputs(), *batch.get_outputs())] == [[2, 1, 32, 32], [2, 10]]
    np.testing.assert_array_equal(logits, batch.run(None, {"image": digits})[0])


def test_a_batch_for_a_board_takes_all_images(tmp_path):
    project = tmp_path / "project"
    invoke("compile", "lenet5", "--machine", "nano", "--batch", "2", "--target", "baremetal", "-o", str(project))
    assert "2x1x32x32" in "".join(each.read_text() for each in project.iterdir() if each.suffix in (".c", ".h", ".md"))


@pytest.mark.parametrize("arguments", [
    ("run", "lenet5", "--batch", "0"),
    ("run", "lenet5", "--batch", "2", "--engine", "rtl", "--jobs", "2"),
])
def test_what_a_batch_is_not_for_is_refused(arguments):
    refused(2, *arguments)


def test_an_input_of_another_batch_is_refused(tmp_path):
    np.savez(tmp_path / "in.npz", image=data.samples().images[:3])
    refused(2, "run", "lenet5", "--machine", "nano", "--batch", "2", "--input", str(tmp_path / "in.npz"))
