"""A small part of the campaign of random instruction words."""

from tests.fuzz.machine_code import WILD, Campaign


def test_random_words_do_what_the_semantics_say_or_end_in_a_fault(tmp_path):
    campaign = Campaign(seed=1, folder=tmp_path)
    for number in range(2 * WILD):
        campaign.run_one(number)
    assert not campaign.failures
    assert {"trapped", "code 0", "code 7"} <= campaign.ended.keys()
