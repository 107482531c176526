"""Random chains of PULP's tools have the loops' levels."""

from tests.fuzz.pulp_chains import chain, difference


def test_chains_have_the_loops_levels():
    # 7 and 29 have sums that are multiplied and cut down, and no addends; 16 and 21 add tensors that are weighed.
    assert [difference(seed) for seed in (0, 1, 7, 16, 21, 29)] == [0] * 6


def test_a_chain_is_a_function_of_its_seed():
    first, second, other = (chain(seed)[0].SerializeToString() for seed in (5, 5, 6))
    assert first == second != other
