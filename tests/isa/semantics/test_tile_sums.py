"""Sums that are held and gone on from."""

import numpy as np

from tests.support.coprocessor_state import CONV, engine_of, run, set_conv
from tests.support.machines import WINOGRAD_MACHINES


def test_hold_and_accumulate_add_up():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    cfg = CONV | {"tiles_x": 2}
    op = {"base": 0, "tiles_y": 2, "groups": 1, "weight_base": 0}
    run(engine, *set_conv(cfg), ("conv.run", op), ("conv.run", op | {"base": 500, "weight_base": 99}),
        ("conv.run", op | {"hold": 1}), ("conv.run", op | {"base": 500, "weight_base": 99, "accumulate": 1}))
    first, second, both = (tile.sums for tile in engine.state.sums)
    np.testing.assert_array_equal(both, first + second)
