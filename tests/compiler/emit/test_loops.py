"""Rolled programs expand to what was rolled, and periodic ones become loops."""

import numpy as np
import pytest

from tilewright.compiler.emit.loops import Sequence1D, follow, roll
from tilewright.isa.program import Issue, Loop, Statement, issue


def commands(body: tuple[Statement, ...] | list[Statement], variables: dict[str, int] | None = None) -> list[str]:
    """Return the text of every command, expanded by a few lines of this test's own."""
    found = []
    for statement in body:
        if isinstance(statement, Issue):
            found.append(str(statement.command(variables or {})))
        else:
            for index in range(statement.count):
                found += commands(statement.body, {**(variables or {}), statement.variable: index})
    return found


def load(address: int, base: int, *flags: str) -> Issue:
    return issue("lda", "linear", *flags, address=address, base=base, rows=4, y=0)


def run(base: int) -> Issue:
    return issue("conv", "run", "wait_act_ready", base=base, tiles_y=2, y_half=0, weight_base=0, groups=1)


@pytest.mark.parametrize(("values", "expected"), [
    ([7, 7, 7, 7], Sequence1D(7, 0)),
    ([7, 5, 3, 1], Sequence1D(7, -2)),
    ([0, 64, 0, 64, 0], Sequence1D(0, 64, 2, 0)),
    ([64, 0, 64, 0, 64], Sequence1D(0, 64, 2, 1)),
    ([10, 20, 30, 10, 20, 30, 10], Sequence1D(10, 10, 3, 0)),
    ([30, 10, 20, 30, 10], Sequence1D(10, 10, 3, 2)),
    ([20, 30, 10, 20, 30, 10], Sequence1D(10, 10, 3, 1)),
])
def test_a_sequence_is_followed_to_its_end(values, expected):
    assert follow(np.array(values)) == (expected, len(values))
    assert expected.values(len(values)).tolist() == values


@pytest.mark.parametrize(("values", "reach"), [([0, 1, 2, 4, 8], 3), ([0, 10, 0, 10, 20], 4), ([3, 1, 4, 1, 5], 2)])
def test_what_does_not_follow_ends_the_sequence(values, reach):
    sequence, found = follow(np.array(values))
    assert found == reach
    assert sequence.values(reach).tolist() == values[:reach]


def test_strips_on_a_ring_become_one_loop():
    body = [each for k in range(20) for each in (load(0x80000000 + 256 * k, 512 * ((k + 1) % 3)),
                                                 run(512 * ((k + 1) % 3)))]
    rolled = roll(body)
    assert len(rolled) == 1
    assert isinstance(rolled[0], Loop)
    assert (rolled[0].variable, rolled[0].count, len(rolled[0].body)) == ("i", 20, 2)
    assert commands(rolled) == commands(body)


def test_blocks_of_strips_become_loops_in_a_loop():
    body = [each for block in range(6) for each in (
        issue("ldw", "main", address=0x80000000 + 4096 * block, base=0, words=512),
        *(load(0x80100000 + 256 * k, 512 * k) for k in range(5)))]
    rolled = roll(body)
    assert len(rolled) == 1
    assert isinstance(rolled[0], Loop)
    assert [type(each) for each in rolled[0].body] == [Issue, Loop]
    assert commands(rolled) == commands(body)


def test_flags_are_part_of_what_must_repeat():
    body = [load(0x80000000 + 64 * k, 0, *(["wait_mem_ready"] if k == 5 else [])) for k in range(12)]
    rolled = roll(body)
    assert [type(each) for each in rolled] == [Loop, Issue, Loop]
    assert commands(rolled) == commands(body)


@pytest.mark.parametrize("seed", range(20))
def test_anything_expands_to_what_it_was(seed):
    rng = np.random.default_rng(seed)
    body = []
    while len(body) < 120:
        period, count, ring = (int(each) for each in rng.integers(1, 6, 3))
        steps = rng.integers(0, 64, period)
        body += [load(0x80000000 + int(rng.integers(4)) * (rng.random() < 0.1) + 16 * k * int(steps[j]),
                      int(steps[j]) * (k % ring)) for k in range(count) for j in range(period)]
    assert commands(roll(body)) == commands(body)


def test_nothing_stays_nothing():
    assert roll([]) == ()
