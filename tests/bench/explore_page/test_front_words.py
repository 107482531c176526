"""The sentences on a front say what is common to its designs and what changes; ticks of axes are round and few."""

import pytest

from tilewright.bench.explore_page.explore_figures import tick_values
from tilewright.bench.explore_page.front_words import front_words
from tilewright.bench.explore_page.shown_exploration import ShownDesign, ShownExploration


def shown_of(*rows):
    """Return an exploration whose front has designs of these lanes, buses and cycles."""
    designs = [ShownDesign(number=place, name=f"d{place}", on_front=True, command="", measures={"cycles": cycles},
                           chosen={"lanes": lanes, "bus_bytes": bus, "array": "inner"})
               for place, (lanes, bus, cycles) in enumerate(rows)]
    return ShownExploration(title="", command="", target="", objectives={"cycles": "cycles"},
                            units={"bus_bytes": "bytes"}, axes={"lanes": (), "bus_bytes": (), "array": ()},
                            designs=designs, references=(), bounds=(), verdicts={}, importances={})


def test_what_falls_what_turns_and_what_stays_are_told_apart():
    words = front_words(shown_of((16, 8, 1000), (8, 16, 2000), (4, 8, 4000)))
    falling, turning, same = (words.index(each) for each in ("lanes 16 → 4", "bus bytes", "array inner"))
    assert falling < turning < same
    assert "cycles 1,000 → 4,000" in words


def test_a_front_of_one_design_and_of_none_have_words_too():
    assert "single design" in front_words(shown_of((1, 4, 5)))
    assert front_words(shown_of()) == ""


@pytest.mark.parametrize(("low", "high"), [(1, 1.01), (95_000, 130_000), (3, 4e9), (0.2, 0.9), (1e6, 9e6), (7, 7.5)])
def test_ticks_are_few_lie_inside_and_are_round(low, high):
    found = tick_values(low, high)
    assert 1 <= len(found) <= 8
    assert all(low <= each <= high * (1 + 1e-9) for each in found)
    assert found == sorted(found)
