"""Boxes of random movements put every byte where the list of origins says, and regular ones are few."""

import math

import numpy as np
import pytest

from tilewright.compiler.passes.canonicalise.moved_boxes import MovedBox, boxes_of
from tilewright.isa.limits import MAX_ROWS


def places(box: MovedBox, steps) -> np.ndarray:
    """Return the places of all bytes of a box, row by row, pixel by pixel."""
    channels, height, width = box.shape
    y, x, c = np.ogrid[:height, :width, :channels]
    return (steps.offset + y * steps.row + x * steps.pixel + c).ravel()


def assert_makes(boxes: list[MovedBox], origins: np.ndarray) -> None:
    """Check that the boxes make up the whole copy, each byte once, within what a layer takes."""
    found = np.full(origins.size, -1)
    for box in boxes:
        assert max(box.shape[1:]) <= MAX_ROWS
        target = places(box, box.target)
        assert (found[target] == -1).all()
        found[target] = places(box, box.source)
    np.testing.assert_array_equal(found, origins)


@pytest.mark.parametrize("seed", range(40))
def test_boxes_make_up_random_movements(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(each) for each in rng.integers(1, 7, int(rng.integers(1, 6))))
    array = np.arange(math.prod(shape)).reshape(shape)
    bases = [0]
    if rng.random() < 0.5:
        array = np.concatenate([array, array + array.size + 1], axis=int(rng.integers(len(shape))))
        bases.append(math.prod(shape) + 1)
    array = array.transpose(rng.permutation(array.ndim))
    array = array[tuple(slice(int(rng.integers(size)), None, int(rng.integers(1, 3))) for size in array.shape)]
    if rng.random() < 0.3:
        array = np.repeat(array, 2, axis=int(rng.integers(array.ndim)))
    origins = array.ravel().astype(np.int64)
    assert_makes(boxes_of(origins, bases, 10**6), origins)


@pytest.mark.parametrize(("name", "origins", "count"), [
    ("phases of an image", np.arange(3 * 64 * 64).reshape(32, 2, 32, 2, 3).transpose(0, 2, 3, 1, 4), 4),
    ("channels of three anchors", np.arange(16 * 16 * 36).reshape(16, 16, 3, 12).transpose(2, 0, 1, 3), 3),
    ("a matrix turned round", np.arange(12 * 40).reshape(40, 12).transpose(1, 0), 12),
    ("channels out of order", np.arange(60 * 64).reshape(60, 64)[:, np.random.default_rng(0).permutation(64)], 64),
    ("one long run", np.arange(5000), 1),
])
def test_what_is_regular_is_few_boxes(name, origins, count):
    origins = np.ascontiguousarray(origins).ravel().astype(np.int64)
    boxes = boxes_of(origins, [0], 64)
    assert boxes is not None
    assert_makes(boxes, origins)
    assert len(boxes) <= count


def test_what_is_not_regular_is_given_up():
    assert boxes_of(np.random.default_rng(0).permutation(3000).astype(np.int64), [0], 64) is None
