"""Channels that are not computed: every tensor is compared as before, and check, run and compare say what is saved."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_model
from tilewright.compiler.network.options import Options
from tilewright.isa.machine import preset
from tilewright.runtime.check.model_check import check_model
from tilewright.runtime.compare.layer_report import compare_layers
from tilewright.runtime.compared_run import run_artefact, run_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.run_options import RunOptions
from tilewright.tools.progress import Silence

BASE = preset("base")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    model = ModelBuilder("qdq", seed=3)
    model.pruned = 0.6
    x = model.conv(model.input((1, 4, 10, 10)), 64, pads=(1, 1, 1, 1))
    y = model.conv(model.conv(x, 64, groups=64, pads=(1, 1, 1, 1)), 48, kernel=1)
    z = model.concat([y, model.conv(x, 40, kernel=1)], y.scale)
    model.pruned = 0.0
    file = tmp_path_factory.mktemp("pruned") / "pruned.onnx"
    file.write_bytes(model.finish(model.conv(model.average(model.conv(z, 16, pads=(1, 1, 1, 1))), 5, kernel=1)))
    return ModelSource.of(file)


def test_as_many_layers_are_compared_as_with_all_channels(source):
    fewer = run_model(source, BASE, "fast", None)
    every = run_model(source, BASE, "fast", None, options=Options(narrow=False))
    assert [str(each.verdict) for each in fewer.report.judged] == [str(each.verdict) for each in every.report.judged]
    assert fewer.comparison.compared == fewer.comparison.layers
    assert fewer.comparison.matches
    assert fewer.report.cycles < every.report.cycles
    assert any(note.startswith("channels not computed") for note in fewer.report.notes)
    assert not any(note.startswith("channels not computed") for note in every.report.notes)


def test_outputs_are_the_same_without_the_tensors_between(source):
    found = run_model(source, BASE, "fast", None, run=RunOptions(outputs_only=True))
    assert found.comparison.matches
    assert len(found.comparison.of_outputs) == 1


def test_an_artefact_fills_constants_in(source, tmp_path):
    compile_model(source.path, BASE, tmp_path / "made", keep_tensors=True)
    found = run_artefact(tmp_path / "made", "fast", None)
    assert found.comparison.matches
    assert found.comparison.compared == found.comparison.layers


def test_check_says_what_is_saved(source):
    design = design_of("base")
    fewer, every = (check_model(source, design, options=Options(narrow=narrow), outputs_only=True)
                    for narrow in (True, False))
    assert fewer.cycles < every.cycles
    assert fewer.memory.weights < every.memory.weights
    assert any("hold constants" in note for note in fewer.notes)


def test_the_layers_agree_three_ways(source):
    found = compare_layers(source, BASE, "fast", None, steps=Silence())
    assert found.matches
    assert len(found.found.rows) == found.found.layers


def test_a_part_that_keeps_its_channels_is_compared_where_it_lies_in_the_whole(tmp_path):
    model = ModelBuilder("qdq", seed=3, zero_point=None)
    x = model.conv(model.input((1, 4, 8, 8)), 16, pads=(1, 1, 1, 1))
    model.pruned = 0.6
    y = model.conv(x, 48, kernel=1)
    model.pruned = 0.0
    whole = model.concat([y, model.max_pool(x, 3, strides=(1, 1), pads=(1, 1, 1, 1))], np.float32(1.2 * x.scale))
    file = tmp_path / "parts.onnx"
    file.write_bytes(model.finish(model.conv(whole, 5, kernel=1)))
    found = run_model(ModelSource.of(file), BASE, "fast", None)
    assert any(note.startswith("channels not computed") for note in found.report.notes)
    assert found.comparison.matches
    assert found.comparison.compared == found.comparison.layers


def test_parts_of_a_layer_that_is_split_are_compared_with_their_own_channels(tmp_path):
    model = ModelBuilder("qdq", seed=1)
    model.pruned = 0.4
    x = model.conv(model.input((1, 2, 24, 64)), 12, kernel=1)
    model.pruned = 0.0
    file = tmp_path / "split.onnx"
    file.write_bytes(model.finish(model.conv(model.average(x), 5, kernel=1)))
    small = replace(preset("nano"), name="small", activation_bytes=4096, result_bytes=1024)
    found = run_model(ModelSource.of(file), small, "fast", None)
    assert any(note.startswith("channels not computed") for note in found.report.notes)
    assert found.comparison.layers > 3, "the average is split"
    assert found.comparison.matches
    assert found.comparison.compared == found.comparison.layers
