"""Padding that is written row by row is the same padding, and all of it."""

import numpy as np
import pytest

from tests.support.stacks import Stack
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.schedule.on_chip import MissingPadding, border, whole_of
from tilewright.isa.machine import preset

BASE = preset("base")


@pytest.fixture(scope="module")
def plans():
    stack = Stack((1, 49, 10))
    stack.conv(64, 3, stride=2, pad=1)
    stack.depthwise()
    return dict(enumerate(compile_layers(stack.network("separable"), BASE).plans))


def test_parts_of_the_border_are_all_of_it_once(plans):
    tile = whole_of(plans[1])

    def painted(rectangles):
        image = np.zeros((tile.rows.stored, tile.columns.stored), int)
        for top, left, rows, columns in rectangles:
            image[top:top + rows, left:left + columns] += 1
        return image

    parts = [range(start, min(start + 4, tile.rows.stored)) for start in range(0, tile.rows.stored, 4)]
    np.testing.assert_array_equal(painted(each for part in parts for each in border(tile, part)),
                                  painted(border(tile)))


def test_rows_beside_results_follow_one_another_to_the_end(plans):
    missing = MissingPadding(plans, BASE)
    missing.begin(1, bare=True)
    height, done = plans[0].layer.out_shape[1], 0
    for first in range(0, height, 4):
        for layer, rows in missing.beside([1], range(first, min(first + 4, height))):
            assert layer == 1
            assert rows is not None
            assert rows.start == done
            done = rows.stop
            missing.rows[1] = None if done == whole_of(plans[1]).rows.stored else done
    assert done == whole_of(plans[1]).rows.stored
    assert missing.whole([1]) == []
