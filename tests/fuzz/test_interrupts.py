"""A small part of the campaign of interrupts and debug halts."""

import pytest

from tests.fuzz.interrupts import Campaign
from tilewright.isa.machine import preset


@pytest.fixture
def campaign(tmp_path):
    return Campaign(seed=1, folder=tmp_path, machine=preset("nano"))


def test_a_network_gives_the_same_bits_under_interrupts_and_halts(campaign):
    campaign.run(1000, ("lenet5",))
    assert not campaign.failures
    assert min(campaign.counts[each] for each in ("externals", "timers", "halts", "sleeps", "killed")) > 10


@pytest.mark.slow
def test_networks_give_the_same_bits_under_many(campaign):
    campaign.run(10_000)
    assert not campaign.failures
