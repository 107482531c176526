"""``check``, ``run``, ``diff`` and ``explore`` give one number of cycles for the same options."""

import csv
import inspect
import json

import pytest

from tests.cli.test_app import invoke, refused
from tests.support.onnx_models import ModelBuilder
from tilewright.cli.check import check
from tilewright.cli.design.diff import diff
from tilewright.cli.design.explore import explore
from tilewright.cli.options.arguments import CompilerOptions, OutputsOnly, QuantiseOptions
from tilewright.cli.run_model import run

TWO_DESIGNS = """
[machine]
preset = "base"
lanes = [4, 8]
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Return the file of a network with a pooling, an addition and an operator on the core."""
    builder = ModelBuilder("qdq", seed=4)
    x = builder.conv(builder.input((1, 8, 12, 12)), 16, kernel=3, pads=(1, 1, 1, 1))
    y = builder.max_pool(builder.add(x, builder.conv(x, 16, kernel=1)))
    z = builder.conv(y, 24, kernel=3, pads=(1, 1, 1, 1))
    builder.output(builder.average(z))
    path = tmp_path_factory.mktemp("one_figure") / "small.onnx"
    path.write_bytes(builder.finish())
    return path


def told(tmp_path, *words):
    """Return the JSON that a command writes."""
    done = invoke(*words, "--json", tmp_path / "told.json")
    assert done.exit_code == 0, done.output
    return json.loads((tmp_path / "told.json").read_text())


@pytest.mark.parametrize("options", [
    (), ("--outputs-only",), ("--batch", "3"), ("--memory", "latency=60,bytes=4", "--no-winograd"),
    ("--memory", "dram=ddr3l-1600x16", "--clock", "100MHz", "--outputs-only", "--no-bands"),
    ("--no-fuse-pool", "--no-chaining"),
], ids=" ".join)
@pytest.mark.parametrize("machine", ["base", "nano"])
@pytest.mark.parametrize("name", ["lenet5", "small"])
def test_the_commands_tell_the_same_cycles(model, tmp_path, name, machine, options):
    words = (model if name == "small" else name, "--machine", machine, *options)
    checked = told(tmp_path, "check", *words)
    predicted = told(tmp_path, "run", *words, "--engine", "cycles")
    computed = told(tmp_path, "run", *words, "--engine", "fast")
    assert checked["predicted_cycles"] == predicted["cycles"] == computed["cycles"]
    assert [each["cycles"] for each in checked["layers"]] == [each["cycles"] for each in predicted["layers"]] \
        == [each["cycles"] for each in computed["layers"]]
    assert checked["milliseconds"] == pytest.approx(predicted["milliseconds"])


@pytest.mark.parametrize("options", [
    (), ("--outputs-only", "--memory", "latency=60", "--batch", "2", "--clock", "50MHz"),
], ids=["no options", "options"])
def test_an_exploration_and_a_difference_tell_them_too(model, tmp_path, options):
    (tmp_path / "two.toml").write_text(TWO_DESIGNS)
    done = invoke("explore", model, "--space", tmp_path / "two.toml", "-o", tmp_path / "out", "--trials", "2", "--jobs",
                  "1", "--no-verify", *options)
    assert done.exit_code == 0, done.output
    rows = csv.DictReader((tmp_path / "out" / "trials.csv").read_text().splitlines())
    trials = {trial["lanes"]: trial for trial in rows}
    assert set(trials) == {"4", "8"}
    for lanes, trial in trials.items():
        predicted = told(tmp_path, "run", model, "--engine", "cycles", "--machine", f"base,lanes={lanes}", *options)
        assert float(trial["cycles"]) == predicted["cycles"]
    predicted = told(tmp_path, "run", model, "--engine", "cycles", *options)
    found = told(tmp_path, "diff", "base", "base", "--model", model, *options)
    assert found["totals"]["cycles"]["first"] == predicted["cycles"]
    assert found["totals"]["milliseconds"]["first"] == pytest.approx(predicted["milliseconds"])


def test_stored_tensors_and_memory_do_change_the_figure(model, tmp_path):
    # Else the tests above would compare what no option reaches.
    figures = {told(tmp_path, "check", model, *options)["predicted_cycles"]
               for options in ((), ("--outputs-only",), ("--memory", "latency=60"), ("--batch", "2"))}
    assert len(figures) == 4


@pytest.mark.parametrize("command", [check, diff, explore, run], ids=lambda each: each.__name__)
def test_every_command_that_predicts_takes_the_options_that_change_cycles(command):
    parameters = inspect.signature(command).parameters
    groups = {*CompilerOptions.__dataclass_fields__, *QuantiseOptions.__dataclass_fields__}
    assert {"batch", "no_bands", "calibrate", "shape"} <= groups
    assert groups | {"memory", "clock", "outputs_only"} <= set(parameters)
    assert parameters["outputs_only"].annotation == OutputsOnly
    assert parameters["outputs_only"].default is False


def test_an_exploration_goes_on_with_the_same_options_only(model, tmp_path):
    (tmp_path / "two.toml").write_text(TWO_DESIGNS)
    words = ("explore", model, "--space", tmp_path / "two.toml", "-o", tmp_path / "out", "--trials", "1", "--jobs", "1",
             "--no-verify")
    assert invoke(*words).exit_code == 0
    assert "compilation" in refused(2, *words, "--outputs-only")
    assert "space" in refused(2, *words, "--memory", "latency=60")


def test_options_of_an_exploration_that_contradict_its_space_are_refused(model, tmp_path):
    (tmp_path / "two.toml").write_text(TWO_DESIGNS + "[memory]\nlatency_cycles = [20, 60]\n[clock]\nmhz = [50, 100]\n")
    words = ("explore", model, "--space", tmp_path / "two.toml", "-o", tmp_path / "out")
    assert "latency_cycles" in refused(2, *words, "--memory", "latency=60")
    assert "mhz" in refused(2, *words, "--clock", "50MHz")
    assert "one MODEL" in refused(2, *words, "lenet5", "--shape", "x=1,8,12,12")
