"""The front of bits and machines of a small network: what is known to be best is on it, and nothing that is beaten."""

import json
import shlex
from itertools import product

import numpy as np
import onnx
import pytest

from tests.cli.test_app import invoke, refused
from tests.support.float_models import FloatBuilder
from tilewright.bench.precision.bits_choice import BitsChoice
from tilewright.bench.precision.bits_cost import MEASURES
from tilewright.bench.precision.bits_judge import BitsJudge, answers_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.precision.quantised_file import bits_model
from tilewright.tools.progress import Silence

IMAGES = np.random.default_rng(1).normal(0, 1, (16, 4, 8, 8)).astype(np.float32)


def network():
    """Return a float model of two layers: weights of the first are levels of 2 bits, of the second none of few."""
    build = FloatBuilder(seed=3)
    weights = build.rng.choice([-2, -1, 0, 1], (64, 4, 3, 3)).astype(np.float32) / 8
    x = build.node("Relu", build.node("Conv", build.input([1, 4, 8, 8]), build.constant(weights), pads=[1] * 4))
    x = build.node("MaxPool", x, kernel_shape=[4, 4], strides=[4, 4])
    return build.finish(build.gemm(build.node("Flatten", x), 256, 16))


@pytest.fixture(scope="module")
def explored(tmp_path_factory):
    """Return the folder of an exploration of the network's bits, and what it printed."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("bits")
        patch.setenv("TILEWRIGHT_CACHE", str(folder / "cache"))
        onnx.save(network(), folder / "net.onnx")
        np.savez(folder / "images.npz", image=IMAGES)
        done = invoke("explore", str(folder / "net.onnx"), "--accuracy", str(folder / "images.npz"), "--outputs-only",
                      "--jobs", "1", "-o", str(folder / "out"))
        assert done.exit_code == 0, done.output
        yield folder, done.output


@pytest.fixture(scope="module")
def found(explored):
    """Return the front as JSON."""
    return json.loads((explored[0] / "out/front.json").read_text())


def test_every_choice_is_judged_and_the_best_of_them_are_on_the_front(explored, found):
    folder, _ = explored
    model = bits_model(find_model(str(folder / "net.onnx"), Silence(), calibrate=folder / "out/calibration.npz"), None)
    feeds = [{"image": image[np.newaxis]} for image in IMAGES]
    judge = BitsJudge(model, feeds, answers_of(network(), feeds), None)
    errors = {choice: judge.judge(choice) for weights in product((8, 4, 2), repeat=2)
              for words in product((8, 16), repeat=2) for choice in [BitsChoice(weights, words)]}
    assert found["choices"] == len(errors)
    least = min(errors.values()).error
    assert min(point["error"] for point in found["points"]) == pytest.approx(least)
    # 2 bits hold the first layer's weights in fewer bytes, so that those of 8 are there only for the least error.
    for point in found["points"]:
        first, last = point["weight_bits"]
        if first == 8 and "coded_weights" in point["machine"]:
            words = tuple(point["activation_bits"])
            assert errors[BitsChoice((8, last), words)].error < errors[BitsChoice((2, last), words)].error
    small = min(found["points"], key=lambda point: point["weight_bytes"])
    assert small["weight_bits"] == [2, 2]
    assert "coded_weights=true" in small["machine"]


def test_no_point_of_the_front_is_beaten(found):
    rows = [[point[name] for name in MEASURES] for point in found["points"]]
    assert len(rows) >= 3
    for row in rows:
        assert not any(all(a <= b for a, b in zip(other, row, strict=True)) for other in rows if other is not row)


def test_what_reads_16_bits_has_a_machine_of_wide_words(found):
    words = [point for point in found["points"] if 16 in point["activation_bits"]]
    assert words
    assert all("wide_words=true" in point["machine"] for point in words)


@pytest.mark.parametrize("place", [0, -1])
def test_the_command_of_a_row_gives_its_figures_again(explored, found, monkeypatch, tmp_path, place):
    folder, output = explored
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(folder / "cache"))
    monkeypatch.chdir(tmp_path)
    point = found["points"][place]
    assert point["command"] in output
    first, second = (shlex.split(each)[1:] for each in point["command"].split(" && "))
    assert invoke(*first).exit_code == 0
    done = invoke(*second, "--json", "report.json")
    assert done.exit_code == 0, done.output
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["cycles"] == point["cycles"]


def test_sensitivity_tells_the_layer_that_loses_nothing(found):
    first, second = found["sensitivity"]
    assert first["int2"]["error"] < 1.2 * found["sensitivity"][0]["int4"]["error"]
    assert second["int2"]["error"] > 4 * first["int2"]["error"]


def test_the_page_and_the_table_hold_all_points(explored, found):
    folder, output = explored
    assert "front.json" in output
    assert (folder / "out/explore.html").read_text().startswith("<!DOCTYPE html>")
    rows = (folder / "out/trials.csv").read_text().splitlines()
    assert sum(row.startswith("1,") for row in rows) == len(found["points"]) < len(rows) - 1


def test_what_does_not_go_together_is_refused(tmp_path):
    out = str(tmp_path / "out")
    images = str(tmp_path / "images.npz")
    np.savez(images, image=IMAGES)
    assert "--accuracy" in refused(2, "explore", "lenet5", "--labels", "l.npy", "-o", out)
    assert "one MODEL" in refused(2, "explore", "lenet5", "lenet5_accel", "--accuracy", images, "-o", out)
    assert "--objective" in refused(2, "explore", "lenet5", "--accuracy", images, "--objective", "cycles", "-o", out)
    assert "'speed'" in refused(2, "explore", "lenet5", "--accuracy", images, "--limit", "speed<=3", "-o", out)
    assert "'image'" in refused(2, "explore", "lenet5", "--accuracy", images, "-o", out)


def test_images_that_are_not_the_models_are_named(tmp_path):
    onnx.save(network(), tmp_path / "net.onnx")
    np.savez(tmp_path / "large.npz", image=np.zeros((4, 4, 9, 9), np.float32))
    np.savez(tmp_path / "others.npz", picture=IMAGES, more=IMAGES)
    for images in (tmp_path / "large.npz", tmp_path / "others.npz"):
        sentence = refused(2, "explore", tmp_path / "net.onnx", "--accuracy", images, "-o", tmp_path / "out")
        assert f"Images {str(images)!r} must be the model's inputs" in sentence
        assert "calibration.npz" not in sentence
