"""Claims of docs/machines.md about processors, locales, homes and folders hold."""

import os
import subprocess
import sys

import pytest

from tests.support.onnx_models import ModelBuilder
from tilewright.tools.toolchain import ToolMissingError, verilator_environment

EQUAL = "1 of 1 layers compared with ONNX Runtime: every element is equal"


@pytest.fixture
def model(tmp_path):
    """Return a file in a folder with a space in its name."""
    builder = ModelBuilder("qdq", seed=2)
    content = builder.finish(builder.conv(builder.input((1, 3, 8, 8)), 4))
    path = tmp_path / "a folder"
    path.mkdir()
    (path / "net.onnx").write_bytes(content)
    return path / "net.onnx"


def tilewright(*arguments, before=None, **variables):
    """Run the command in an environment with these variables; return how it ended."""
    return subprocess.run([sys.executable, "-m", "tilewright", *map(str, arguments)], capture_output=True,
                          encoding="utf-8", errors="replace", env=os.environ | variables, preexec_fn=before,
                          check=False)


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("variables", [
    ASCII,
    {"LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Kiritimati"},
], ids=["ASCII", "Turkish, a day ahead"])
def test_locale_and_time_zone_change_nothing(model, variables):
    done = tilewright("run", model, **variables)
    assert (done.returncode, EQUAL in done.stdout) == (0, True), done.stderr
    done = tilewright("compile", model, "-o", model.parent / "compiled", **variables)
    assert done.returncode == 0, done.stderr


def test_a_name_that_the_locale_cannot_say_is_refused(model):
    done = tilewright("run", model.rename(model.with_name("größe.onnx")), **ASCII)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    said = "tilewright: Name of a model must have only letters of the locale's encoding, unlike "
    assert done.stderr.startswith(said)


def test_folders_may_have_spaces(model, tmp_path):
    folders = {name: tmp_path / f"for {name}" for name in ("TMPDIR", "TILEWRIGHT_CACHE")}
    for folder in folders.values():
        folder.mkdir()
    done = tilewright("compile", model, "-o", tmp_path / "com piled", **{name: str(at) for name, at in folders.items()})
    assert done.returncode == 0, done.stderr
    done = tilewright("simulate", tmp_path / "com piled", TMPDIR=str(folders["TMPDIR"]))
    assert (done.returncode, EQUAL in done.stdout) == (0, True), done.stderr


def test_a_cache_with_a_space_is_refused_for_simulators_only(monkeypatch, tmp_path):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "my cache"))
    with pytest.raises(ToolMissingError, match=r"/my cache' .*TILEWRIGHT_CACHE"):
        verilator_environment()


def test_a_home_that_cannot_be_written_is_one_sentence(model):
    variables = {"HOME": os.devnull, "XDG_CACHE_HOME": "", "TILEWRIGHT_CACHE": ""}
    done = tilewright("run", model, **variables)
    last = done.stderr.splitlines()[-1]
    assert (done.returncode, last) == (2, "tilewright: '/dev/null/.cache/tilewright' cannot be used: Not a directory.")


def test_a_cache_elsewhere_serves_without_a_home(model, tmp_path):
    variables = {"HOME": os.devnull, "XDG_CACHE_HOME": "", "TILEWRIGHT_CACHE": str(tmp_path / "cache")}
    done = tilewright("compile", model, "-o", tmp_path / "compiled", **variables)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "cache" / "zig").is_dir()


def test_what_is_written_has_the_callers_permissions(model, tmp_path):
    """And it can be read again by who wrote it."""
    done = tilewright("compile", model, "-o", tmp_path / "compiled", before=lambda: os.umask(0o077))
    assert done.returncode == 0, done.stderr
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "compiled").iterdir()} == {0}
    done = tilewright("simulate", tmp_path / "compiled", before=lambda: os.umask(0o077))
    assert (done.returncode, EQUAL in done.stdout) == (0, True), done.stderr


def test_one_core_is_enough(model):
    first = min(os.sched_getaffinity(0))
    done = tilewright("run", model, before=lambda: os.sched_setaffinity(0, {first}))
    assert (done.returncode, EQUAL in done.stdout) == (0, True), done.stderr
