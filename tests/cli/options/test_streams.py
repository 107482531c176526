"""A report alone on standard output, and commands that print nothing but errors."""

import json

import pytest
from typer.testing import CliRunner

from tilewright.cli.app import app


def invoke(*words):
    return CliRunner().invoke(app, list(words))


def test_a_report_is_alone_on_standard_output():
    done = invoke("machine", "nano", "--json", "-")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["machine"]["lanes"] == 1
    assert "lanes" in done.stderr


def test_tables_are_on_standard_output_again_behind_such_a_command():
    invoke("machine", "nano", "--json", "-")
    assert "lanes" in invoke("machine", "nano").stdout


@pytest.mark.parametrize("words", [("-q", "machine", "nano"), ("machine", "nano", "--quiet"),
                                   ("machine", "-q", "nano")])
def test_a_quiet_command_prints_nothing(words):
    done = invoke(*words)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


def test_a_quiet_command_prints_its_report_and_its_errors():
    assert json.loads(invoke("machine", "nano", "--json", "-", "-q").stdout)
    failed = invoke("machine", "lanes=3", "-q")
    assert (failed.exit_code, failed.stdout) == (2, "")
    assert failed.stderr.count("\n") == 1
