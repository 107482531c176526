"""Places in a ring: what takes turns has two of them."""

import pytest

from tests.support.stacks import Stack
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.schedule.rings import Region, Ring
from tilewright.isa.machine import preset
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report


@pytest.mark.parametrize(("cursor", "size"),
                         [(0, 2048), (512, 2048), (2040, 2048), (512, 1800), (2048, 2048), (8, 1368)])
def test_regions_that_take_turns_are_apart(cursor, size):
    ring = Ring(4096, 8, cursor=cursor)
    ring.begin_turns(size)
    before = None
    for _ in range(6):
        region = ring.allocate(size)
        assert region is not None, "the next is to be loaded while the one before is in use"
        if before is not None:
            ring.release(before)
        before = region


def test_what_fits_only_once_stays_where_it_would_be():
    ring = Ring(4096, 8, cursor=512)
    ring.begin_turns(2056)
    assert ring.allocate(2056) == Region(512, 2568)


@pytest.mark.parametrize(("cursor", "size", "following", "start"), [
    (1712, 2048, 512, 2048),  # four fit before it, where three did
    (1712, 2048, 336, 1712),  # the next one fits behind it
    (1712, 2048, 900, 2048),
    (1100, 2000, 1050, 1100),  # at 2096 no more would fit before it
    (3000, 2048, 512, 0),  # it begins at 0 anyway
])
def test_a_region_moves_up_to_the_end_if_more_of_the_next_fit_before_it(cursor, size, following, start):
    ring = Ring(4096, 8, cursor=cursor)
    ring.move_up(size, following)
    assert ring.allocate(size) == Region(start, start + size)


def test_a_region_does_not_move_up_to_where_another_is():
    ring = Ring(4096, 8, cursor=1712, taken=[Region(3760, 4096)])
    ring.move_up(2048, 512)
    assert ring.allocate(2048) == Region(1712, 3760)


def test_more_weights_of_the_next_layer_come_ahead_behind_one_large_block(monkeypatch):
    """The layer behind waits for its weights; while the one before computes, the bus has nothing else to do."""
    stack = Stack((16, 16, 16))
    for channels in (64, 128, 128):
        stack.conv(channels, 3, pad=1)
    stack.conv(256, 3, pad=1, stride=2)
    stack.conv(256, 3, pad=1)
    network = stack.network("ahead")

    def cycles() -> int:
        compiled = compile_layers(network, preset("base"))
        return predict_report(job_of_compiled(compiled, "ahead")).cycles

    taken = cycles()
    monkeypatch.setattr(Ring, "move_up", lambda *_: None)
    assert taken < 0.995 * cycles()


def test_blocks_of_weights_behind_those_of_another_layer_take_turns(monkeypatch):
    """The second block is loaded while the first is used, though the layer before has left the ring at a bad place."""
    stack = Stack((64, 8, 8))
    stack.conv(64, 1)
    stack.conv(128, 3, pad=1)

    def cycles() -> int:
        compiled = compile_layers(stack.network("turns"), preset("base"))
        return predict_report(job_of_compiled(compiled, "turns")).cycles

    monkeypatch.setattr(Ring, "move_up", lambda *_: None)
    taken = cycles()
    monkeypatch.setattr(Ring, "begin_turns", lambda *_: None)
    assert taken < 0.85 * cycles()
