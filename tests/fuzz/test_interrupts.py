"""A small part of the campaign of interrupts and debug halts; ``python -m tests.fuzz.interrupts`` runs 10,000."""

import pytest

from tests.fuzz.interrupts import NETWORKS, WAITS, Campaign
from tilewright.isa.machine import preset


@pytest.fixture
def campaign(tmp_path):
    return Campaign(seed=1, folder=tmp_path, machine=preset("nano"))


def test_a_network_gives_the_same_bits_under_interrupts_and_halts(campaign):
    campaign.run(1000, ("lenet5",))
    assert not campaign.failures
    assert min(campaign.counts[each] for each in ("externals", "timers", "halts", "sleeps", "killed")) > 10


@pytest.mark.slow
def test_each_network_gives_the_same_bits_however_it_waits(campaign):
    campaign.run(2000)
    assert not campaign.failures
    assert campaign.counts["runs"] >= len(NETWORKS) * len(WAITS)
