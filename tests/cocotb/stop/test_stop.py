# amaranth: UnusedElaboratable=no
"""Hostile programs on both ports are stopped in the cycles that docs/integration.md states: a part of the campaign."""

import pytest

from tests.cocotb.stop.__main__ import run_campaign
from tilewright.isa.command_port import PORTS


@pytest.mark.parametrize("port", PORTS)
def test_hostile_programs_are_stopped_within_the_bound(port):
    run_campaign(port, count=10, seed=1)
