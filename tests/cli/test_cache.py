"""The cache is shown, cleared and pruned by age: links stay inside, and nothing outside is touched."""

import os

import pytest
from typer.testing import CliRunner

from tilewright import __version__
from tilewright.cli.app import app


@pytest.fixture
def place(tmp_path, monkeypatch):
    cache, outside = tmp_path / "cache", tmp_path / "outside"
    for folder in (cache / "simulators" / "a", cache / "simulators" / "b", outside):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(bytes(2048))
    (cache / "simulators" / "a" / "link").symlink_to(outside)
    for name in ("file", "link"):
        os.utime(cache / "simulators" / "a" / name, (0, 0), follow_symlinks=False)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(cache))
    return cache, outside


def called(*words):
    return CliRunner().invoke(app, ["cache", *words])


def test_it_shows_place_and_size(place):
    done = called()
    assert done.exit_code == 0
    assert str(place[0]) in done.output
    assert "KiB  simulators" in done.output
    assert "simulators" in done.output


def test_prune_removes_what_is_old_and_no_more(place):
    cache, outside = place
    assert called("--prune", "7").exit_code == 0
    assert [each.name for each in (cache / "simulators").iterdir()] == ["b"]
    assert (outside / "file").exists()


def test_clear_removes_everything_inside_and_nothing_outside(place):
    cache, outside = place
    assert called("--clear").exit_code == 0
    assert list(cache.iterdir()) == []
    assert (outside / "file").exists()


def test_clear_and_prune_exclude_each_other(place):
    assert called("--clear", "--prune", "1").exit_code == 2
    assert (place[0] / "simulators" / "a" / "file").exists()


def test_the_version_is_printed():
    done = CliRunner().invoke(app, ["--version"])
    assert done.exit_code == 0
    assert done.output.split() == ["tilewright", __version__]
