"""The matrix of tool chains: its networks, its list, what writers leave behind, what a cell is, and the page."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tilewright.bench.toolchains import environments, tool_cells
from tilewright.bench.toolchains.environments import Written, network_files, written
from tilewright.bench.toolchains.onnx_builder import float_model
from tilewright.bench.toolchains.tool_cells import ToolCell, ToolCells
from tilewright.bench.toolchains.tool_list import QuantiserTool, WrittenForm, read_tools
from tilewright.bench.toolchains.toolchains_page import ToolFigures, toolchains_page
from tilewright.bench.toolchains.writers.networks import NETWORKS, SHAPES, samples
from tilewright.errors import InputError, ToolError
from tilewright.runtime.oracle.onnx_runtime import session

_TOOL = QuantiserTool(name="Own", module="ort_quantiser", packages=("none==1",), forms=(
    WrittenForm(name="plain"), WrittenForm(name="wrong", arguments={"weight_type": "QInt5"}),
    WrittenForm(name="dynamic", limit="dynamic", arguments={"dynamic": True})))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_runs_in_onnx_runtime_and_its_results_differ(name):
    run = session(float_model(name).SerializeToString())
    results = [run.run(None, {"image": each[None]})[0] for each in samples(SHAPES[name])[:2]]
    assert np.isfinite(results).all()
    assert np.std(results[0] - results[1]) > 0.01


def test_the_list_names_modules_that_are_there_and_each_form_once():
    tools = read_tools()
    assert len(tools) >= 8
    for tool in tools:
        assert importlib.util.find_spec(f"tilewright.bench.toolchains.writers.{tool.module}") is not None
        names = [form.name for form in tool.forms]
        assert len(set(names)) == len(names) >= 3
        assert any("==" in package for package in tool.packages)


@pytest.mark.parametrize(("text", "words"), [
    ("[[tool]]\nname = 1", "[[tool]] entries"),
    ('[[tool]]\nname="a"\nmodule="b"\npackages=[]\nforms=[{name="c", limit="none"}]', "int8, partly, dynamic, words")])
def test_a_list_that_is_none_is_refused(tmp_path, text, words):
    path = tmp_path / "list.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_tools(path)
    assert words in str(caught.value)


def test_forms_are_written_once_and_one_that_fails_says_why(cache, monkeypatch):
    monkeypatch.setattr(environments, "environment", lambda tool: Path(sys.executable))
    plain, wrong, dynamic = written(_TOOL, "keywords")
    assert (plain.error, dynamic.error) == ("", "")
    assert "QInt5" in wrong.error
    monkeypatch.setattr(environments, "environment", lambda tool: pytest.fail("they are there"))
    assert written(_TOOL, "keywords") == [plain, wrong, dynamic]

    cells, images = ToolCells.open(), network_files("keywords")[1]
    found = [cells.of(file, form, images) for file, form in zip((plain, wrong, dynamic), _TOOL.forms, strict=True)]
    assert found[0].cycles > 1000
    assert (found[1].counts, found[1].unwritten) == (False, wrong.error)
    assert found[2].cycles > 100 * found[0].cycles
    assert found[2].why
    monkeypatch.setattr(tool_cells, "_measured", lambda *given: pytest.fail("it is kept"))
    assert cells.of(plain, _TOOL.forms[0], images) == found[0]


def test_an_environment_that_cannot_be_installed_is_said_once(cache, monkeypatch):
    calls = []

    def refuse(command, name, *, may_fail=False):
        calls.append(command)
        if "pip" in command:
            raise ToolError("Environment of Own could not be installed: no such package")
        Path(command[-1]).mkdir(parents=True)
        return ""

    monkeypatch.setattr(environments, "_run", refuse)
    for _ in range(2):
        with pytest.raises(ToolError, match="no such package"):
            environments.environment(_TOOL)
    assert len(calls) == 2


def test_a_file_that_onnx_runtime_does_not_run_does_not_count(cache, tmp_path):
    path = tmp_path / "folder" / "bad.onnx"
    path.parent.mkdir()
    path.write_bytes(b"no model")
    cell = ToolCells.open().of(Written(path), _TOOL.forms[0], path)
    assert cell.invalid
    assert not cell.counts
    assert json.loads(next((cache / "toolchains" / "cells").iterdir()).read_text())["invalid"] == cell.invalid


@pytest.mark.parametrize(("limit", "cycles", "kept"), [
    ("int8", 110, True), ("int8", 111, False), ("partly", 130, True), ("partly", 131, False), ("dynamic", 300, True),
    ("dynamic", 301, False), ("words", 999, None)])
def test_limits_are_of_the_plain_file(limit, cycles, kept):
    assert ToolCell(cycles=cycles).keeps(WrittenForm(name="form", limit=limit), 100) is kept


def test_what_is_refused_is_over_its_limit_and_what_does_not_count_is_not():
    form = WrittenForm(name="form")
    assert ToolCell(refused="no").keeps(form, 100) is ToolCell(crashed="KeyError").keeps(form, 100) is False
    assert ToolCell(invalid="no").keeps(form, 100) is ToolCell(unwritten="no").keeps(form, 100) is None


def test_the_page_names_each_cell_over_its_limit_with_its_reason():
    tool = replace(_TOOL, forms=(WrittenForm(name="good"), WrittenForm(name="slow"), WrittenForm(name="refused"),
                                 WrittenForm(name="invalid")))
    cells = {("good", "a"): ToolCell(cycles=1100, layers=4), ("slow", "a"): ToolCell(cycles=7000, why="90 % Mul: odd"),
             ("refused", "a"): ToolCell(refused="It is of no form"), ("invalid", "a"): ToolCell(invalid="no kernel")}
    page = toolchains_page([ToolFigures(tool, cells), ToolFigures(replace(tool, name="Gone"), {}, "no package")],
                           ["a"], {"a": 1000})
    assert "**1 of 3 files are within their limit.**" in page
    assert "| good | int8 | 1.10 |" in page
    assert "| slow | int8 | **7.00** |" in page
    assert "- Own, a: slow **7.00**. 90 % Mul: odd." in page
    assert "- Own, a: refused **refused**. It is of no form." in page
    assert "- Own, invalid, a: no kernel" in page
    assert "- Gone (none==1): no package" in page


def test_what_is_left_in_float_is_run_with_calibrate_and_keeps_the_limit_of_that(cache, monkeypatch):
    asked = []

    def predicted(path, samples):
        asked.append(samples)
        return {"cycles": 9000 if samples is None else 1200}

    monkeypatch.setattr(tool_cells, "_predicted", predicted)
    monkeypatch.setattr(tool_cells, "_leaves_float", lambda path: True)
    model, images = network_files("keywords")
    cell = ToolCells.open().of(Written(model), _TOOL.forms[0], images, 1000)
    assert asked == [None, images]
    assert (cell.cycles, cell.alone, cell.calibrated) == (1200, 9000, True)
    assert cell.limit(_TOOL.forms[0]) == 1.3
    assert cell.keeps(_TOOL.forms[0], 1000) is True
    monkeypatch.setattr(tool_cells, "_leaves_float", lambda path: False)
    whole = ToolCells.open().of(Written(model), WrittenForm(name="partly", limit="partly"), images, 1000)
    assert (whole.cycles, whole.calibrated) == (9000, False)


def test_files_quantised_at_run_time_are_measured_and_shown_with_and_without_calibrate(cache, monkeypatch):
    monkeypatch.setattr(tool_cells, "_predicted", lambda path, samples: {"cycles": 9000 if samples is None else 1200})
    model, images = network_files("keywords")
    form = WrittenForm(name="dynamic", limit="dynamic")
    cell = ToolCells.open().of(Written(model), form, images, 1000)
    assert cell == ToolCell(cycles=9000, static=ToolCell(cycles=1200, calibrated=True))
    assert ToolCells.open().of(Written(model), form, images, 1000) == cell
    page = toolchains_page([ToolFigures(replace(_TOOL, forms=(form,)), {("dynamic", "a"): cell})], ["a"], {"a": 1000})
    assert "**0 of 1 files are within their limit.**" in page
    assert "1 of 1 are within that; with these in place of the first figures 1 of 1 files" in page
    assert "| dynamic | dynamic | **9.00**, 1.20ᶜ |" in page


def test_networks_with_attention_are_counted_apart():
    tool = replace(_TOOL, forms=(WrittenForm(name="good"),))
    cells = {("good", "residual"): ToolCell(cycles=1000), ("good", "vit"): ToolCell(cycles=9000, why="80 % Softmax")}
    page = toolchains_page([ToolFigures(tool, cells)], ["residual", "vit"], {"residual": 1000, "vit": 1000})
    assert "**1 of 1 files are within their limit.**" in page
    assert "0 of 1 are within their limit" in page
    assert page.index("## Above their limit, with attention") < page.index("- Own, vit: good **9.00**. 80 % Softmax.")


@pytest.mark.parametrize(("levels", "zero", "beyond"), [
    (np.uint8([0, 255]), np.uint8([128]), False), (np.uint8([0, 255]), np.uint8([120]), True),
    (np.int8([-128, 127]), np.int8([-3]), True), (np.int8([-128, 127]), np.int8([0]), False)])
def test_weights_that_leave_int8_are_found(levels, zero, beyond):
    assert tool_cells._leaves_int8(levels, zero) is beyond
