"""A small part of the campaign of faults on purpose."""

from tests.fuzz.faults import MISHAPS, Campaign


def test_every_mishap_ends_in_a_reported_fault_or_a_right_result(tmp_path):
    campaign = Campaign(seed=1, folder=tmp_path)
    campaign.run(2 * len(MISHAPS))
    assert not campaign.failures
    ended = {verdict for _, verdict in campaign.verdicts}
    assert {"recovered", "reported"} <= ended
