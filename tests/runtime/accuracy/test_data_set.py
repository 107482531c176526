"""Data sets are mapped where they can be, given image by image, and refused where they do not suit the model."""

import os

import numpy as np
import pytest

from tilewright.errors import InputError
from tilewright.runtime.accuracy.data_set import DataFiles, ImageAxes, read_data_set
from tilewright.runtime.oracle.inputs import NodeArg

IMAGE = NodeArg("image", (1, 3, 4, 5), "tensor(float)")
ROW = NodeArg("row", (1, 7), "tensor(int8)")
IMAGES = np.random.default_rng(0).normal(size=(6, 3, 4, 5)).astype(np.float32)
LABELS = np.array([0, 1, 2, 0, 1, 2], np.uint8)


def read(images, labels=None, layout=ImageAxes.MODEL, expected=(IMAGE,), classes=3):
    return read_data_set(DataFiles(images=images, labels=labels, layout=layout), expected, classes)


@pytest.mark.parametrize(("write", "mapped"), [(np.savez, True), (np.savez_compressed, False)])
def test_an_archive_gives_images_and_labels(tmp_path, write, mapped):
    write(tmp_path / "data.npz", image=IMAGES, labels=LABELS)
    found = read(tmp_path / "data.npz")
    assert len(found) == 6
    np.testing.assert_array_equal(found.feed(4)["image"], IMAGES[4:5])
    np.testing.assert_array_equal(found.labels, LABELS)
    assert isinstance(found.arrays["image"], np.memmap) == mapped


def test_plain_arrays_and_labels_of_a_file_of_their_own(tmp_path):
    np.save(tmp_path / "images.npy", IMAGES)
    np.save(tmp_path / "labels.npy", LABELS)
    found = read(tmp_path / "images.npy", tmp_path / "labels.npy")
    np.testing.assert_array_equal(found.feed(5)["image"], IMAGES[5:])
    np.testing.assert_array_equal(found.labels, LABELS)
    assert read(tmp_path / "images.npy").labels is None


def test_images_with_a_batch_of_one_and_with_channels_last_are_the_same(tmp_path):
    np.save(tmp_path / "batched.npy", IMAGES[:, np.newaxis])
    np.save(tmp_path / "last.npy", IMAGES.transpose(0, 2, 3, 1))
    for found in (read(tmp_path / "batched.npy"), read(tmp_path / "last.npy", layout=ImageAxes.NHWC)):
        np.testing.assert_array_equal(found.feed(2)["image"], IMAGES[2:3])


def test_one_array_serves_a_single_input_whatever_its_name_and_several_need_theirs(tmp_path):
    rows = np.arange(42, dtype=np.int8).reshape(6, 7)
    np.savez(tmp_path / "both.npz", image=IMAGES, row=rows)
    np.testing.assert_array_equal(read(tmp_path / "both.npz", expected=(IMAGE, ROW)).feed(1)["row"], rows[1:2])
    np.savez(tmp_path / "other.npz", x=IMAGES)
    assert len(read(tmp_path / "other.npz")) == 6
    with pytest.raises(InputError, match=r"image, row, not x"):
        read(tmp_path / "other.npz", expected=(IMAGE, ROW))


def test_images_that_are_not_as_many_are_refused(tmp_path):
    np.savez(tmp_path / "both.npz", image=IMAGES, row=np.zeros((5, 7), np.int8))
    with pytest.raises(InputError, match=r"'image' has 6, 'row' has 5"):
        read(tmp_path / "both.npz", expected=(IMAGE, ROW))


@pytest.mark.parametrize(("images", "said"), [
    (IMAGES.astype(np.float64), r"'image' .*float32.*not float64"),
    (IMAGES[:, :, :3], r"3, 4, 5\), not \(6, 3, 3, 5\)$"),
    (IMAGES.transpose(0, 2, 3, 1), r"not \(6, 4, 5, 3\); .*--layout nhwc"),
    (IMAGES[:0], r"'image' .*at least one"),
])
def test_images_of_another_type_or_shape_are_refused(tmp_path, images, said):
    np.save(tmp_path / "images.npy", images)
    with pytest.raises(InputError, match=said):
        read(tmp_path / "images.npy")


@pytest.mark.parametrize(("labels", "said"), [
    (LABELS[:5], r"the number of images, 6, not 5"),
    (LABELS.astype(np.float32), r"not float32"),
    (np.eye(3, dtype=int)[LABELS], r"shape \(6, 3\)"),
    (np.array([0, 1, 2, 3, 1, 2]), r"0\.\.2.*not 3.*image 3"),
    (np.array([0, -1, 2, 0, 1, 2]), r"0\.\.2.*not -1.*image 1"),
])
def test_labels_that_cannot_be_those_of_the_images_are_refused(tmp_path, labels, said):
    np.savez(tmp_path / "data.npz", image=IMAGES, labels=labels)
    with pytest.raises(InputError, match=said):
        read(tmp_path / "data.npz")


def test_an_image_that_holds_no_numbers_is_named(tmp_path):
    broken = IMAGES.copy()
    broken[3, 0, 0, 0] = np.nan
    np.save(tmp_path / "images.npy", broken)
    found = read(tmp_path / "images.npy")
    found.feed(2)
    with pytest.raises(InputError, match=r"'image' .*image 3$"):
        found.feed(3)


@pytest.mark.parametrize("name", ["none.npz", "none.npy", "text.npz", "text.npy", "images.png", "objects.npz"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    for each in ("text.npz", "text.npy", "images.png"):
        (tmp_path / each).write_text("no array")
    np.savez(tmp_path / "objects.npz", image=np.array([{}]))
    with pytest.raises(InputError, match=name):
        read(tmp_path / name)


def test_a_digest_follows_contents_labels_and_layout(tmp_path):
    np.save(tmp_path / "a.npy", IMAGES)
    np.save(tmp_path / "b.npy", IMAGES)
    os.utime(tmp_path / "b.npy", (1, 1))
    np.save(tmp_path / "c.npy", IMAGES + 1)
    np.save(tmp_path / "labels.npy", LABELS)
    a, b, c = (DataFiles(images=tmp_path / f"{name}.npy").digest() for name in "abc")
    assert a == b != c
    assert len({a, DataFiles(images=tmp_path / "a.npy", labels=tmp_path / "labels.npy").digest(),
                DataFiles(images=tmp_path / "a.npy", layout=ImageAxes.NHWC).digest()}) == 3
    with pytest.raises(InputError, match=r"d.npy"):
        DataFiles(images=tmp_path / "d.npy").digest()
