"""The command ``explore``: results in its folder, and what is left after it was killed."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_app import invoke, refused
from tilewright.runtime.design.design_file import read_design

SPACE = """
[machine]
preset = "base"
lanes = { min = 1, max = 8 }
lanes_per_cluster = [1, 2, 4]
bus_bytes = [4, 8]
activation_bytes = { min = "16 KiB", max = "128 KiB" }
"""
TRIALS = 12


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    path = tmp_path_factory.mktemp("space") / "small.toml"
    path.write_text(SPACE)
    return path


def words(space, folder, *more):
    return ["explore", "lenet5_accel", "--space", str(space), "-o", str(folder), "--trials", str(TRIALS), "--jobs", "1",
            "--seed", "7", "--no-verify", *more]


@pytest.fixture(scope="module")
def explored(space, tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored")
    done = invoke(*words(space, folder))
    assert done.exit_code == 0, done.output
    return folder


def table(folder):
    return list(csv.DictReader((folder / "trials.csv").read_text().splitlines()))


def test_the_folder_has_trials_front_and_designs(explored):
    rows = table(explored)
    assert [int(row["trial"]) for row in rows] == list(range(TRIALS))
    content = json.loads((explored / "front.json").read_text())
    assert content["trials"] == TRIALS
    assert content["points"]
    assert content["start"]["name"] == "base"
    assert content["start"]["measures"]["cycles"] > 0
    for point in content["points"]:
        path = explored / "designs" / f"{point['name']}.toml"
        assert read_design(path).to_json() == point["design"]
        shown = invoke("run", "lenet5_accel", "--machine", path, "--engine", "cycles", "--json", explored / "one.json")
        assert shown.exit_code == 0, shown.output
        assert json.loads((explored / "one.json").read_text())["cycles"] == point["measures"]["cycles"]


def finished(folder):
    """Return how many trials of the storage are finished, 0 if there is none."""
    path = folder / "study.journal"
    return path.read_text().count('"op_code":6') if path.exists() else 0


def test_killed_twice_it_ends_as_if_it_had_not_been(space, explored, tmp_path):
    for least in (3, 7):
        process = subprocess.Popen([sys.executable, "-m", "tilewright", *words(space, tmp_path)],
                                   cwd=Path(__file__).parents[3], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while finished(tmp_path) < least and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert least <= finished(tmp_path) < TRIALS
    done = invoke(*words(space, tmp_path))
    assert done.exit_code == 0, done.output
    assert table(tmp_path) == table(explored)


def test_two_jobs_find_as_many(space, tmp_path):
    done = invoke(*words(space, tmp_path, "--jobs", "2"))
    assert done.exit_code == 0, done.output
    rows = table(tmp_path)
    assert len({tuple(value for key, value in row.items() if key != "trial") for row in rows}) == TRIALS


@pytest.mark.parametrize(("more", "named"), [
    (("--objective", "beauty"), "beauty"), (("--limit", "mult18=1"), "mult18=1"), (("--limit", "mult<=1"), "mult"),
    (("--sampler", "luck"), "luck"), (("--target", "asic"), "asic"), (("--space", "none.toml"), "none.toml"),
    (("--technology", "moon"), "moon"), (("--ray", "local"), "--ray"), (("--seed", "8"), "seed"),
    (("nothing.onnx",), "nothing.onnx"), (("lenet5=heavy",), "heavy"), (("lenet5_accel=2",), "lenet5_accel"),
    (("--limit", "mult18<=5"), "limits"),
])
def test_what_cannot_be_is_refused(space, explored, more, named):
    assert named in refused(2, *words(space, explored, *more))


@pytest.mark.parametrize(("model", "more", "named"), [
    ("lenet5", ("--sampler", "tpe"), "--sampler"), ("lenet5", ("--verify", "3"), "--verify"),
    ("lenet5=2", (), "lenet5=2"),
])
def test_what_a_search_of_bits_does_not_use_is_refused(tmp_path, model, more, named):
    (tmp_path / "images.npz").touch()
    out = tmp_path / "out"
    assert named in refused(2, "explore", model, "--accuracy", str(tmp_path / "images.npz"), "-o", str(out), *more)
    assert not out.exists()


def test_a_front_without_points_is_refused_and_the_trials_are_kept(space, tmp_path):
    done = invoke(*words(space, tmp_path, "--limit", "mult18<=1"))
    assert done.exit_code == 2
    assert "mult18" in done.stderr
    assert {row["verdict"] for row in table(tmp_path)} == {"beyond a limit"}
