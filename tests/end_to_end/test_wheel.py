"""The wheel has all that a run needs: it is built, unpacked outside the repository, and used there."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Return a folder that holds what the wheel installs."""
    dist, place = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("site")
    # From a copy: setuptools leaves folders beside what it builds.
    source = tmp_path_factory.mktemp("source") / "tilewright"
    shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(
        ".*", "out", "build", "dist", "*.egg-info", "__pycache__"))
    done = subprocess.run([sys.executable, "-c", BUILD, dist], cwd=source, check=True, capture_output=True, text=True)
    with zipfile.ZipFile(dist / done.stdout.split()[-1]) as wheel:
        wheel.extractall(place)
    return place


def tilewright(installed: Path, folder: Path, *words: str) -> str:
    """Run the installed command in ``folder``; return its standard output."""
    environment = os.environ | {"PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"}
    done = subprocess.run([sys.executable, "-m", "tilewright", *words], cwd=folder, env=environment, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_lenet(installed: Path, folder: Path, engine: str) -> None:
    """Run LeNet-5 and hold its files to what they are for."""
    report = json.loads(tilewright(installed, folder, "run", "lenet5", "--engine", engine, "--machine", "nano",
                                   "--json", "-", "--html", "page.html", "--trace", "trace.json"))
    assert report["matches_reference"] is True
    assert report["engine"] == engine
    assert "<html" in (folder / "page.html").read_text()
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]


def test_the_package_is_the_installed_one(installed, tmp_path):
    script = "import tilewright; print(tilewright.__file__)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(installed)},
                          capture_output=True, text=True, check=True)
    assert Path(done.stdout.strip()).is_relative_to(installed)


def test_a_model_runs_from_the_wheel(installed, tmp_path):
    run_lenet(installed, tmp_path, "fast")


def test_the_hardware_comes_out_of_the_wheel(installed, tmp_path):
    tilewright(installed, tmp_path, "verilog", "--machine", "nano", "-o", "nano")
    assert any((tmp_path / "nano").rglob("*.v"))


@pytest.mark.slow
def test_a_model_runs_in_rtl_from_the_wheel(installed, tmp_path):
    run_lenet(installed, tmp_path, "rtl")
