"""Accesses with gaps: whether two of them share a place, against sets of places."""

from dataclasses import dataclass

import numpy as np
import pytest

from tilewright.compiler.schedule.accesses import Access, Intervals, MemoryTouches, mesh, same_teeth


@dataclass(frozen=True)
class Comb:
    start: int
    stop: int
    step: int = 0
    size: int = 0

    def places(self):
        if not self.step:
            return set(range(self.start, self.stop))
        return {tooth + i for tooth in range(self.start, self.stop, self.step) for i in range(self.size)
                if tooth + i < self.stop}


def random_comb(rng):
    start, length = int(rng.integers(0, 40)), int(rng.integers(1, 60))
    if rng.random() < 0.3:
        return Comb(start, start + length)
    step = int(rng.choice([4, 8, 12, 16]))
    return Comb(start, start + length, step, int(rng.integers(1, step)))


@pytest.mark.parametrize("seed", range(20))
def test_combs_that_mesh_share_no_place(seed):
    rng = np.random.default_rng(seed)
    meshing = 0
    for _ in range(300):
        first, second = random_comb(rng), random_comb(rng)
        if mesh(first, second):
            meshing += 1
            assert not first.places() & second.places()
        assert mesh(first, second) == mesh(second, first)
        if same_teeth(first, second) and first.start <= second.start and second.stop <= first.stop:
            assert second.places() <= first.places()
    assert meshing > 0


def test_channels_of_a_pixel_mesh_and_overlapping_ones_do_not():
    assert mesh(Comb(0, 1000, 32, 16), Comb(16, 1016, 32, 16))
    assert mesh(Comb(0, 1000, 32, 16), Comb(48, 1016, 64, 8))
    assert not mesh(Comb(0, 1000, 32, 17), Comb(16, 1016, 32, 16))
    assert not mesh(Comb(0, 1000, 32, 16), Comb(16, 1016, 24, 8))


def test_an_interval_replaces_what_it_covers_and_no_other_teeth():
    held = Intervals()
    for comb in (Comb(0, 64, 16, 4), Comb(4, 64, 16, 4), Comb(0, 64, 16, 4)):
        held.replace(comb, lambda _: True)
    assert sorted(set(held.overlapping(0, 64)), key=lambda comb: comb.start) == [Comb(0, 64, 16, 4), Comb(4, 64, 16, 4)]
    held.replace(Comb(0, 64), lambda _: True)
    assert set(held.overlapping(0, 64)) == {Comb(0, 64)}


def test_a_load_that_waits_for_a_store_waits_for_all_before_it():
    touches = MemoryTouches()
    touches.add([Access("memory", 0, 8, write=True)])
    touches.add([Access("memory", 8, 16, write=True)])
    touches.add([Access("memory", 16, 24, write=True)])
    assert not touches.there([(0, 8)])
    touches.add([Access("results", 0, 64, write=True), Access("memory", 8, 9)])
    assert touches.there([(0, 16)])
    assert touches.there([(24, 32)])
    assert not touches.there([(0, 8), (23, 32)])
    touches.fence()
    assert touches.there([(16, 24)])


def test_a_load_between_the_teeth_of_a_store_waits_for_nothing():
    touches = MemoryTouches()
    touches.add([Access("memory", 0, 64, write=True, step=8, size=2)])
    touches.add([Access("memory", 4, 60, step=8, size=2)])
    assert not touches.there([(0, 8)])
