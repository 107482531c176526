"""What a partly quantised model leaves in float is said with its cost, and the option that is named mends it."""

import re

import numpy as np
import onnx
import pytest

from tests.cli.test_app import invoke
from tests.support.partly_quantised import MODELS, by_static_quantisation, samples


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a partly quantised model, the float one, and samples."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    by_static_quantisation(MODELS["average"](), tmp_path / "part.onnx", op_types_to_quantize=["Conv"])
    onnx.save(MODELS["average"](), tmp_path / "plain.onnx")
    np.save(tmp_path / "samples.npy", samples())
    return tmp_path


@pytest.mark.parametrize("command", [("check",), ("run", "--engine", "cycles"), ("run", "--engine", "fast")])
def test_what_is_left_in_float_is_said_and_the_option_mends_it(folder, command):
    name, *options = command
    said = " ".join(invoke(name, folder / "part.onnx", *options).stdout.split())
    found = re.search(r"(\d+) layers are computed in float beside quantised ones \(([^)]*)\), (\d+)% .*--calibrate ",
                      said)
    assert found, said
    assert int(found[1]) > 2
    assert "AveragePool" in found[2]
    assert int(found[3]) > 50
    mended = invoke(name, folder / "part.onnx", *options, "--calibrate", folder / "samples.npy")
    assert mended.exit_code == 0, mended.output
    assert "beside quantised ones" not in " ".join(mended.stdout.split())


def test_of_a_float_model_left_so_nothing_is_said(folder):
    done = invoke("run", folder / "plain.onnx", "--float", "--engine", "cycles")
    assert done.exit_code == 0, done.output
    assert "beside quantised ones" not in " ".join(done.stdout.split())
