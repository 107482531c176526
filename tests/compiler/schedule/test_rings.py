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


def test_blocks_of_weights_behind_those_of_another_layer_take_turns(monkeypatch):
    """The second block is loaded while the first is used, though the layer before has left the ring at a bad place."""
    stack = Stack((64, 8, 8))
    stack.conv(64, 1)
    stack.conv(128, 3, pad=1)

    def cycles() -> int:
        compiled = compile_layers(stack.network("turns"), preset("base"))
        return predict_report(job_of_compiled(compiled, "turns")).cycles

    taken = cycles()
    monkeypatch.setattr(Ring, "begin_turns", lambda *_: None)
    assert taken < 0.85 * cycles()
