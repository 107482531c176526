"""A result is written whole or not at all."""

import os
from pathlib import Path

import numpy as np
import pytest

from tilewright.errors import InputError
from tilewright.tools.files import write_arrays, write_file


def test_content_arrives_and_nothing_else(tmp_path):
    write_file(tmp_path / "report.json", b"old")
    write_file(tmp_path / "report.json", b"new")
    assert (tmp_path / "report.json").read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["report.json"]


def test_a_full_disk_is_a_sentence():
    with pytest.raises(InputError, match=r"/dev/full' .*No space left"):
        write_file(Path("/dev/full"), b"report")


def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path, monkeypatch):
    write_file(tmp_path / "report.json", b"old")

    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match=r"report.json' .*No space left"):
        write_file(tmp_path / "report.json", b"new")
    assert os.listdir(tmp_path) == ["report.json"]
    assert (tmp_path / "report.json").read_bytes() == b"old"


def test_a_missing_folder_is_a_sentence(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        write_file(tmp_path / "none" / "report.json", b"report")


def test_arrays_are_read_back(tmp_path):
    write_arrays(tmp_path / "out.npz", {"logits": np.arange(3), "file": np.ones(2)})
    with np.load(tmp_path / "out.npz", allow_pickle=False) as archive:
        assert sorted(archive.files) == ["file", "logits"]
        np.testing.assert_array_equal(archive["logits"], np.arange(3))
