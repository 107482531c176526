"""LeNet-5 with a core that sleeps at fences: the same bits, a little later, and less energy in the core."""

import json

import pytest
from typer.testing import CliRunner

from tilewright.cli.app import app
from tilewright.errors import InputError
from tilewright.models import builtin
from tilewright.runtime.run_options import RunOptions
from tilewright.runtime.session import InferenceSession


def tilewright(*words):
    result = CliRunner().invoke(app, [*map(str, words)])
    return result.exit_code, result.output


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("wait"), {}
    for wait in ("poll", "wfi"):
        code, shown = tilewright("run", "lenet5", "--machine", "nano", "--engine", "rtl", "--wait", wait, "--json",
                                 folder / wait)
        assert code == 0
        found[wait] = json.loads((folder / wait).read_text()), shown
    return found


def test_both_have_the_bits_of_onnx_runtime_and_one_sleeps(reports):
    (poll, polled), (wfi, slept) = reports["poll"], reports["wfi"]
    assert poll["matches_reference"]
    assert wfi["matches_reference"]
    assert poll["asleep_cycles"] == 0 < wfi["asleep_cycles"] < wfi["cycles"]
    assert "asleep" not in polled
    assert f"asleep for {wfi['asleep_cycles']:,} cycles" in slept
    assert 0 < wfi["cycles"] - poll["cycles"] < 100


def test_a_sleeping_core_takes_less_energy(reports):
    poll, wfi = (reports[wait][0]["energy"]["components"]["riscv_core"]["uj"] for wait in ("poll", "wfi"))
    assert wfi < poll


def test_a_compiled_model_sleeps_as_it_was_compiled_to(tmp_path):
    assert tilewright("compile", "lenet5", "--machine", "nano", "--wait", "wfi", "-o", tmp_path / "lenet5")[0] == 0
    code, shown = tilewright("simulate", tmp_path / "lenet5", "--engine", "rtl")
    assert code == 0
    assert "asleep for" in shown


@pytest.mark.parametrize("words", [("--engine", "fast"), ("--engine", "rtl", "--jobs", "2")])
def test_where_no_core_runs_a_program_it_cannot_sleep(words):
    code, shown = tilewright("run", "lenet5", *words, "--wait", "wfi")
    assert code == 2
    assert "--wait wfi needs --engine rtl" in shown


def test_a_session_refuses_to_sleep_on_an_engine_without_a_core():
    with pytest.raises(InputError, match="rtl"):
        InferenceSession(builtin("lenet5"), "nano", "fast", run_options=RunOptions(wait="wfi"))
