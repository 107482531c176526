"""The unit in RTL gives what the definitions of its roundings do, and a wrong one is told."""

import subprocess

import pytest

from tests.fuzz import requantisations


@pytest.mark.slow
def test_each_rounding_is_its_definition(tmp_path, monkeypatch):
    program = requantisations.build(tmp_path)
    assert [requantisations.differing(program, kind, 20_000, 1) for kind in requantisations.KINDS] == [""] * 6
    # The program tells how many differ: that of a kind is none of another's.
    told = subprocess.run([program, "9", "10", "1"], check=False, capture_output=True, text=True)
    assert "10 requantisations" in told.stdout
