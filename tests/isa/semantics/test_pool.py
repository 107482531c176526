"""pool.sum against docs/datapath.md tile by tile, and the maxima of pool.window value by value."""

import numpy as np
import pytest

from tests.support.coprocessor_state import (
    CLAMP,
    CONV,
    MACHINES,
    OUTPUT,
    engine_of,
    run,
    set_conv,
    set_parameters,
    sums_for,
    tiles_of,
)
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa import numerics


@MACHINES
def test_pool_sum_takes_byte_l_of_a_run_to_lane_l(machine):
    engine = engine_of(machine)
    op = {"base": 3, "tiles_y": 2, "groups": 2}
    cfg = CONV | {"runs": 1, "group_step": machine.lanes}
    run(engine, *set_conv(cfg), ("pool.sum", op))
    for g, _, ty, tx in tiles_of(op, cfg, machine):
        for lane in range(machine.lanes):
            first = 3 + g * machine.lanes + ty * 400 + tx * 19 + lane
            total = sum(int(engine.state.activations[first + ky * 401 + kx * 37])
                        for ky in range(3) for kx in range(2))
            assert engine.state.sums[-1].sums[ty, tx, g * machine.lanes + lane] == total


@pytest.mark.parametrize("winograd", [0, 1])
@pytest.mark.parametrize(("kernel", "stride", "top", "left", "rows", "width"), [
    ((2, 2), (2, 2), 0, 0, 2, 2), ((3, 3), (2, 2), 1, 1, 3, 3), ((3, 2), (1, 3), 0, 1, 2, 2),
    ((2, 3), (3, 1), 1, 2, 2, 5), ((2, 2), (2, 2), 0, 0, 1, 1)])
def test_pooling_visits_windows_value_by_value(winograd, kernel, stride, top, left, rows, width):
    engine = engine_of(WINOGRAD_MACHINES["base"])
    parameters = set_parameters(engine, 8)
    sums = sums_for(engine, winograd, 4, 6)
    expected = engine.state.results.copy()
    for y in range(4):
        for x in range(5):
            for wy in range(rows):
                for wx in range(width):
                    y0, x0 = wy * stride[0] - top, wx * stride[1] - left
                    if not (y0 <= y < y0 + kernel[0] and x0 <= x < x0 + kernel[1]):
                        continue
                    first = (y, x) == (max(0, y0), max(0, x0))
                    for n in range(6):
                        place = 40 + 120 * wy + 13 * wx + n
                        value = numerics.requantise(int(sums[y, x, n]), **parameters[n], **CLAMP)
                        expected[place] = value if first else max(value, expected[place])
    run(engine, ("act.set_output", OUTPUT), ("act.set_clamp", CLAMP),
        ("pool.window", {"kernel_y": kernel[0], "kernel_x": kernel[1], "stride_y": stride[0], "stride_x": stride[1],
                         "top": top, "left": left, "rows": rows, "width": width}),
        ("act.run", {"base": 40, "rows": 4, "channels": 6, "pooled": 1, "winograd": winograd}))
    np.testing.assert_array_equal(engine.state.results, expected)
