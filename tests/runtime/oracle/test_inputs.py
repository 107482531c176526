"""Inputs are the model's or are refused in a sentence, wherever they come from."""

import re
import zipfile

import numpy as np
import pytest

from tilewright.compiler.network.layers import TensorInfo
from tilewright.errors import InputError
from tilewright.runtime.oracle import inputs as module
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.runtime.oracle.inputs import (
    NodeArg,
    check_inputs,
    digit,
    node_args,
    random_inputs,
    read_inputs,
    safely,
)

IMAGE = NodeArg("image", (1, 1, 2, 3), "tensor(float)")
MASK = NodeArg("mask", (1, 4), "tensor(uint8)")
GOOD = np.arange(6, dtype=np.float32).reshape(IMAGE.shape)


def info(name="q", onnx_name="image", dtype="float32", zero_point=0, shape=(1, 2, 3)):
    return TensorInfo(name=name, shape=shape, scale=np.float32(0.25), zero_point=zero_point, onnx_name=onnx_name,
                      onnx_dtype=dtype, onnx_shape=(1, *shape))


def test_arguments_carry_onnx_runtimes_type_names():
    assert node_args([info()]) == [IMAGE]
    assert IMAGE.dtype == np.float32


def test_an_input_quantised_twice_is_one_argument():
    assert len(node_args([info("q1"), info("q2")])) == 1


def test_a_tensor_inside_the_model_is_no_argument():
    inner = TensorInfo(name="t", shape=(1, 1, 1), scale=np.float32(1), zero_point=0)
    with pytest.raises(ValueError, match=r"Tensor.*'t'"):
        node_args([inner])


@pytest.mark.parametrize(("inputs", "sentence"), [
    ({}, "Inputs must be image, not none"),
    ({"picture": GOOD}, "Inputs must be image, not picture"),
    ({"image": GOOD, "more": GOOD}, "Inputs must be image, not image, more"),
    ({"image": GOOD.astype(np.float64)},
     "Input 'image' must be float32 of shape (1, 1, 2, 3), not float64 of shape (1, 1, 2, 3)"),
    ({"image": GOOD[0]}, "Input 'image' must be float32 of shape (1, 1, 2, 3), not float32 of shape (1, 2, 3)"),
    ({"image": np.where(GOOD == 4, np.float32(np.nan), GOOD)},
     "Input 'image' must hold numbers, not NaN, as at index (0, 0, 1, 1)"),
])
def test_wrong_arrays_are_refused(inputs, sentence):
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$"):
        check_inputs(inputs, [IMAGE])


def test_arrays_are_read_by_name(tmp_path):
    np.savez(tmp_path / "in.npz", mask=np.ones((1, 4), np.uint8), image=GOOD)
    read = read_inputs(tmp_path / "in.npz", [IMAGE, MASK])
    np.testing.assert_array_equal(read["image"], GOOD)
    assert read["mask"].sum() == 4


def test_a_single_array_needs_no_name(tmp_path):
    np.save(tmp_path / "in.npy", GOOD)
    np.testing.assert_array_equal(read_inputs(tmp_path / "in.npy", [IMAGE])["image"], GOOD)


def test_a_single_array_is_not_enough_for_two_inputs(tmp_path):
    np.save(tmp_path / "in.npy", GOOD)
    with pytest.raises(InputError, match=r"image, mask, not 'in.npy'"):
        read_inputs(tmp_path / "in.npy", [IMAGE, MASK])


def test_other_files_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"\.npz or \.npy, not 'in.png'"):
        read_inputs(tmp_path / "in.png", [IMAGE])


@pytest.mark.parametrize("name", ["in.npz", "in.npy"])
@pytest.mark.parametrize("content", [b"", b"no such format", b"\x93NUMPY\x01\x00\x10\x00{'descr'", b"PK\x03\x04half"])
def test_broken_files_are_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"^Input file '.*{name}' cannot be read: \S+"):
        read_inputs(tmp_path / name, [IMAGE])


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.npy.*No such file"):
        read_inputs(tmp_path / "none.npy", [IMAGE])


def test_pickled_objects_are_refused(tmp_path):
    np.save(tmp_path / "in.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="Object arrays"):
        read_inputs(tmp_path / "in.npy", [IMAGE])


def test_an_archive_that_expands_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_FILE_BYTES", 1000)
    with zipfile.ZipFile(tmp_path / "in.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("image.npy", bytes(1001))
    with pytest.raises(InputError, match=r"at most 1000 bytes, not 1001$"):
        read_inputs(tmp_path / "in.npz", [IMAGE])


def test_the_digit_is_an_image_of_the_data_set():
    made = digit([NodeArg("image", (1, 1, 32, 32), "tensor(float)")])
    check_inputs(made.arrays, [NodeArg("image", (1, 1, 32, 32), "tensor(float)")])
    assert made.origin.startswith("digit 0 of models/digits.npz, a handwritten ")


@pytest.mark.parametrize(("dtype", "zero_point"), [("float32", 0), ("float32", -52), ("int8", 3), ("uint8", -128)])
def test_random_inputs_cover_the_quantised_range(dtype, zero_point):
    tensor = info(dtype=dtype, zero_point=zero_point, shape=(4, 40, 50))
    made = random_inputs([tensor])
    check_inputs(made.arrays, node_args([tensor]))
    levels = quantise_input(tensor, made.arrays["image"])
    assert set(np.unique(levels)) == set(range(-128, 128))
    np.testing.assert_array_equal(made.arrays["image"], random_inputs([tensor]).arrays["image"])
    assert made.origin == "random values over the quantised range, seed 0"


@pytest.mark.parametrize(("given", "wanted", "changed"), [
    (np.array([1.5, 1e-3]), np.float32, True), (np.array([1.5], np.float16), np.float32, True),
    (np.array([0, 255], np.uint8), np.float32, True), (np.array([2**24]), np.float32, True),
    (np.array([2**24 + 1]), np.float32, False), (np.array([2**31 - 1, -(2**31)]), np.int32, True),
    (np.array([2**31]), np.int32, False), (np.array([-1]), np.uint8, False), (np.array([], np.int64), np.int8, True),
    (np.array([1.0]), np.int32, False), (np.array([True, False]), np.uint8, True),
    (np.array([1j]), np.float32, False), (np.array(["1"]), np.float32, False),
])
def test_numbers_become_another_type_where_none_changes(given, wanted, changed):
    found = safely(given, np.dtype(wanted))
    assert found.dtype == (wanted if changed else given.dtype)
    np.testing.assert_array_equal(found, given.astype(wanted) if changed else given)


def test_an_input_file_may_hold_numbers_of_another_type(tmp_path):
    expected = [NodeArg("image", (1, 2), "tensor(float)"), NodeArg("index", (1,), "tensor(int32)")]
    np.savez(tmp_path / "x.npz", image=np.array([[0.5, 2.0]]), index=np.array([7]))
    assert {name: array.dtype for name, array in read_inputs(tmp_path / "x.npz", expected).items()} == {
        "image": np.float32, "index": np.int32}
