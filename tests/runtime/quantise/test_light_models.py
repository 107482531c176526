"""Published structures in float, quantised, compiled and run: every layer equals ONNX Runtime or is off as it may."""

import shutil

import onnx
import pytest

from tilewright.isa.machine import PRESETS
from tilewright.models.light import light
from tilewright.runtime.compare.layer_report import compare_layers
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.tools.progress import Silence

# Not vgg19, whose fully connected layers take half a gigabyte as floats; those of the last two take 2 to 3 in all.
STRUCTURES = ("squeezenet", "shufflenet", "inception_v1", "inception_v2", "resnet50", "densenet121", "bvlc_alexnet",
              "zfnet512")


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCTURES)
def test_a_published_structure_runs_from_float_to_the_engine(name, tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    onnx.save(light(name), tmp_path / f"{name}.onnx")
    quantised = find_model(str(tmp_path / f"{name}.onnx"), Silence())
    comparison = compare_layers(ModelSource.of(quantised.path), PRESETS["base"], "fast", None, steps=Silence())
    assert comparison.matches, comparison.found.divergence
    rows = comparison.found.rows
    assert {row.engine for row in rows} == {"equal"}
    # All that the core has to do is Softmax, and in the older ones two LRN, and what brings these to float and back.
    assert sum(row.kind == "core" for row in rows) <= 8
    assert len(comparison.error.layers) > len(rows) // 4
    # pytest keeps the folders of three runs, which would be gigabytes.
    shutil.rmtree(tmp_path)
