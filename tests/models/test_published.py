"""MLPerf Tiny's networks are found by name, run within their cycles, and lie beside the files they were made of."""

import json
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from tilewright.cli.app import app
from tilewright.models import FOLDER, NAMES, PUBLISHED, builtin

NOTICE = Path(__file__).parents[2] / "NOTICE"
INPUTS = {"mlperf-resnet8": [32, 32, 3], "mlperf-kws": [49, 10, 1], "mlperf-vww": [96, 96, 3], "mlperf-ad": [640]}
CYCLES = {"mlperf-resnet8": 130_000, "mlperf-kws": 75_000, "mlperf-vww": 179_000, "mlperf-ad": 36_000}


def test_each_has_a_name_an_onnx_file_and_the_tflite_file_it_is_made_of():
    assert set(PUBLISHED) == set(INPUTS) <= set(NAMES)
    for name in PUBLISHED:
        assert (FOLDER / f"{name}.tflite").read_bytes()[4:8] == b"TFL3"
        assert name in NOTICE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_takes_one_int8_tensor(name):
    model = onnx.load(builtin(name))
    (value,) = model.graph.input
    tensor = value.type.tensor_type
    assert tensor.elem_type == onnx.TensorProto.INT8
    assert [extent.dim_value for extent in tensor.shape.dim][1:] == INPUTS[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_each_runs_as_onnx_runtime_does_within_its_cycles(name, tmp_path):
    report = tmp_path / "report.json"
    done = CliRunner().invoke(app, ["run", name, "--json", str(report)])
    assert done.exit_code == 0, done.output
    assert json.loads(report.read_text())["cycles"] <= CYCLES[name]
