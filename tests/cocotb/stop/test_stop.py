# amaranth: UnusedElaboratable=no
"""Hostile programs on both ports are stopped in the cycles that docs/integration.md states: a part of the campaign."""

import pytest

from tests.cocotb.stop.__main__ import run_campaign
from tilewright.isa.command_port import PORTS


@pytest.mark.parametrize("port", [PORTS[0], *(pytest.param(port, marks=pytest.mark.slow) for port in PORTS[1:])])
def test_hostile_programs_are_stopped_within_the_bound(port):
    assert len(run_campaign(port, hostile=6, stops=4, seed=1)) == 10
