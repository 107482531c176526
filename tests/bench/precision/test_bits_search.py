"""Choices of bits that are tried, and which of their points nothing beats."""

from itertools import pairwise

import numpy as np

from tilewright.bench.precision.bits_choice import BitsChoice
from tilewright.bench.precision.bits_judge import BitsError
from tilewright.bench.precision.bits_search import joint_choices, single_choices, undominated
from tilewright.runtime.precision.layer_bits import bits_given

EIGHT = BitsChoice.eight(8)


def judged(choices, costs):
    """Return errors that add up over layers: ``costs`` by layer of 4 bits, four times as much of 2."""
    def error(choice):
        found = sum(cost * {8: 0, 4: 1, 2: 4}[bits] for cost, bits in zip(costs, choice.weights, strict=True))
        found -= 0.1 * choice.activations.count(16) - 1
        return BitsError(found, found)
    return {choice: error(choice) for choice in choices}


def test_layers_are_tried_one_at_a_time_before_they_are_tried_together():
    single = single_choices(8, [True] * 7 + [False])
    assert single[0] == EIGHT
    assert len(single) == 1 + 3 * 8 - 1
    assert all(sum(a != b for a, b in zip(each.weights + each.activations, EIGHT.weights + EIGHT.activations,
                                          strict=True)) == 1 for each in single[1:])


def test_a_network_of_few_layers_has_every_choice_tried():
    assert len(set(single_choices(3, [True, True, False]))) == 3**3 * 2**2


def test_weights_are_narrowed_first_where_a_saved_bit_costs_least():
    costs = [4.0, 1.0, 3.0, 2.0, 8.0, 7.0, 5.0, 6.0]
    errors = judged(single_choices(8, [False] * 8), costs)
    found = [each for each in joint_choices(errors, [100] * 8) if not each.words]
    assert [sum(a) >= sum(b) for a, b in pairwise(each.weights for each in found)] == [True] * (len(found) - 1)
    assert found[0].weights == (8, 4, 8, 4, 8, 8, 8, 8)
    assert found[-1].weights == (2,) * 8
    # A layer of many weights comes first: each of its bits costs less.
    many = joint_choices(errors, [100, 100, 100, 100, 10_000, 100, 100, 100])
    assert many[0].weights == (8, 4, 8, 8, 2, 8, 8, 8)


def test_layers_that_gain_read_words_with_every_step_of_narrowing():
    errors = judged(single_choices(8, [True] * 8), np.arange(1.0, 9.0))
    found = joint_choices(errors, [100] * 8)
    assert {each.activations.count(16) for each in found} >= {0, 1, 2, 8}
    assert any(each.weights == (2,) * 8 and each.activations == (16,) * 8 for each in found)


def test_points_are_kept_that_no_other_beats():
    points = np.random.default_rng(0).integers(0, 6, (60, 3)).tolist()
    expected = {tuple(point) for point in points if not any(
        all(a <= b for a, b in zip(other, point, strict=True)) and other != point for other in points)}
    found = undominated(points, lambda point: point)
    assert {tuple(point) for point in found} == expected
    assert len(found) == len(expected)


def test_options_mean_the_choice_again():
    choice = BitsChoice((8, 4, 2, 4), (16, 8, 8, 16))
    names, options = ("a", "b", "c", "d"), choice.options()
    given = {option: [text for each, text in zip(options[::2], options[1::2], strict=True) if each == option]
             for option in ("--weights", "--activations")}
    bits = bits_given(given["--weights"], given["--activations"])
    assert bits.of_weights(names) == choice.bits(names).of_weights(names) == {"b": 4, "c": 2, "d": 4}
    assert bits.of_activations(names) == {"a": 16, "d": 16}
    assert BitsChoice.eight(4).options() == []
    assert BitsChoice((4,) * 4, (8,) * 4).options() == ["--weights", "int4"]
