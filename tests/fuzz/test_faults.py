"""A small part of the campaign of faults on purpose."""

import pytest

from tests.fuzz.faults import MISHAPS, Campaign
from tilewright.isa.core_names import HOSTS


@pytest.mark.parametrize("host", HOSTS)
def test_every_mishap_ends_in_a_reported_fault_or_a_right_result(tmp_path, host):
    campaign = Campaign(seed=1, folder=tmp_path, host=host)
    campaign.run(2 * len(MISHAPS))
    assert not campaign.failures
    ended = {verdict for _, verdict in campaign.verdicts}
    assert {"recovered", "reported"} <= ended


@pytest.mark.slow
def test_upsets_turn_bits_over(tmp_path):
    campaign = Campaign(seed=1, folder=tmp_path)
    campaign.run_upsets(60)
    ended = {verdict for _, verdict in campaign.upsets}
    assert "masked" in ended
    assert ended - {"masked"}
