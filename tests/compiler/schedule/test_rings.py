"""Places in a ring: what takes turns has two of them."""

import pytest

from tilewright.compiler.schedule.rings import Region, Ring


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
