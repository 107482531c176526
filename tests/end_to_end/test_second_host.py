"""LeNet-5 on a host without CV-X-IF: Ibex sends the same program's commands over AXI4-Lite, in RTL."""

import json

import pytest
from typer.testing import CliRunner

from tilewright.cli.app import app
from tilewright.errors import InputError
from tilewright.models import builtin
from tilewright.runtime.run_options import RunOptions
from tilewright.runtime.session import InferenceSession

PLAIN = ("--machine", "nano,array=plain,lanes=2,post_lanes=2")
"""The simulator of `HOSTED`."""


def tilewright(*words):
    result = CliRunner().invoke(app, [*map(str, words)])
    return result.exit_code, result.output


def test_lenet_on_ibex_has_the_bits_of_onnx_runtime(tmp_path):
    report, page = tmp_path / "report.json", tmp_path / "run.html"
    code, shown = tilewright("run", "lenet5", *PLAIN, "--engine", "rtl", "--host", "ibex", "--json", report,
                             "--html", page)
    assert code == 0
    assert "engine rtl, host ibex" in shown
    assert "every element is equal" in shown
    found = json.loads(report.read_text())
    assert (found["host"], found["matches_reference"]) == ("ibex", True)
    # Commands come faster than the units carry them out, from either host.
    assert found["cycles"] == pytest.approx(found["predicted_cycles"], rel=0.02)
    assert f"{found['predicted_cycles']:,} cycles" in shown
    assert "engine rtl, host ibex" in page.read_text()


def test_a_model_compiled_for_the_registers_runs_on_the_host_that_drives_them(tmp_path):
    code, _ = tilewright("compile", "lenet5", *PLAIN, "--port", "axi4lite", "-o", tmp_path / "lenet5")
    assert code == 0
    assert json.loads((tmp_path / "lenet5" / "manifest.json").read_text())["port"] == "axi4lite"
    code, shown = tilewright("simulate", tmp_path / "lenet5", "--engine", "rtl")
    assert code == 0
    assert "host ibex" in shown
    with pytest.raises(InputError, match=r"--port cvxif"):
        InferenceSession(tmp_path / "lenet5", engine="rtl", run_options=RunOptions(host="cv32e40x"))


@pytest.mark.parametrize("engine", ["fast", "cycles"])
def test_engines_without_hosts_refuse_one(engine):
    code, shown = tilewright("run", "lenet5", "--engine", engine, "--host", "ibex")
    assert code == 2
    assert "needs --engine rtl" in shown


def test_a_session_refuses_a_host_that_its_engine_has_not():
    with pytest.raises(InputError, match="ibex"):
        InferenceSession(builtin("lenet5"), "nano", "fast", run_options=RunOptions(host="ibex"))
