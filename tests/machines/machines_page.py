"""The page docs/machines.md: Pythons and installers that were tried, in empty environments with the newest wheels.

``python -m tests.machines.machines_page docs/machines.md`` tries the Pythons of `VERSIONS` that are on the PATH, or
those of ``--python``, by uv, and the first by pip too; by pip alone where there is no uv. What another computer has
tried it writes with ``--json``, and ``--rows`` puts it on the page.
"""

import argparse
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.structure.source import ROOT
from tilewright.tools.files import write_file
from tilewright.tools.markdown import table
from tilewright.tools.page_origin import with_origin
from tilewright.tools.templates import render

__all__ = ["VERSIONS", "TriedPython", "main", "page"]

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
PACKAGES = ("onnx", "onnxruntime", "numpy", "optuna", "plotly")
_TEMPLATE = Path(__file__).with_name("machines_page.md.j2")

RUNS: Mapping[str, tuple[str, ...]] = {
    "run": ("run", "lenet5", "--json", "fast.json"),
    "run in RTL": ("run", "lenet5", "--engine", "rtl", "--json", "rtl.json"),
    "compare": ("compare", "lenet5"),
    "explore": ("explore", "lenet5", "--trials", "4", "--no-verify", "-o", "explored"),
}
"""What is run in each environment, by the name of its column."""

_VERSIONS_OF = ("import json, platform, sys; from importlib.metadata import version; "
                "print(json.dumps([platform.python_version(), *map(version, sys.argv[1:])]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedPython:
    """An environment: Python, system, installer, seconds of the installation, versions, and the verdict of each run."""

    python: str
    system: str
    installer: str
    seconds: float
    packages: dict[str, str]
    verdicts: dict[str, str]

    @property
    def cells(self) -> list[str]:
        """The cells of its row."""
        return [self.python, self.system, self.installer, f"{self.seconds:.0f}",
                *(self.packages[name] for name in PACKAGES), *(self.verdicts[name] for name in RUNS)]


def page(found: Sequence[TriedPython]) -> str:
    """Return the page."""
    heads = ("Python", "system", "installer", "seconds", *PACKAGES, *RUNS)
    return render(_TEMPLATE, tried=table(heads, [each.cells for each in found], left=3))


def _tried(python: str, installer: str, wheel: Path, scratch: Path, left_out: Sequence[str]) -> TriedPython:
    """Install the wheel into an empty environment and run what `RUNS` says, but for what is left out."""
    home = scratch / f"{Path(installer).name}-{Path(python).name}"
    words = [] if installer == "pip" else [installer]
    _done([*words, "venv", "--python", python, str(home)] if words else [python, "-m", "venv", str(home)])
    own = str(home / "bin" / "python")
    began = time.monotonic()
    _done([*words, "pip", "install", "-q", "--python", own, str(wheel)] if words else
          [own, "-m", "pip", "install", "-q", str(wheel)])
    seconds = time.monotonic() - began
    version, *packages = json.loads(_done([own, "-c", _VERSIONS_OF, *PACKAGES]))
    said = _done([*words, "--version"] if words else [own, "-m", "pip", "--version"]).split()
    return TriedPython(
        python=version, system=platform.freedesktop_os_release()["PRETTY_NAME"], installer=" ".join(said[:2]),
        seconds=seconds, packages=dict(zip(PACKAGES, packages, strict=True)),
        verdicts={name: "–" if name in left_out else _verdict(own, given, home) for name, given in RUNS.items()})


def _verdict(python: str, words: Sequence[str], home: Path) -> str:
    """Return what a command came to: cycles of a run that is equal, ✓, or the last line of an error."""
    done = subprocess.run([python, "-m", "tilewright", *words], cwd=home, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"**{(done.stderr or done.stdout).strip().splitlines()[-1]}**"
    if "--json" not in words:
        return "✓"
    report = json.loads((home / words[-1]).read_text())
    return f"{report['cycles']:,} cycles" if report["matches_reference"] else "**differs**"


def _done(words: Sequence[str]) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def _built(scratch: Path) -> Path:
    """Return the wheel of this checkout, made from a copy, so that nothing is left in it."""
    copy = scratch / "source"
    listed = _done(["git", "-C", str(ROOT), "ls-files", "-z"]).split("\0")
    for name in filter(None, listed):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
    _done([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(scratch), str(copy)])
    return next(scratch.glob("*.whl"))


def main() -> int:
    """Try, write; return 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, nargs="?", help="the page to write")
    parser.add_argument("--python", action="append", metavar="FILE", help="this interpreter; or several")
    parser.add_argument("--uv", default=shutil.which("uv"), metavar="FILE", help="the program uv")
    parser.add_argument("--wheel", type=Path, metavar="FILE", help="a wheel, instead of this checkout's")
    parser.add_argument("--skip", action="append", default=[], choices=RUNS, help="leave this out; or several")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was tried, for --rows")
    parser.add_argument("--rows", type=Path, action="append", default=[], metavar="FILE",
                        help="rows of others; alone, or beside those of --python")
    given = parser.parse_args()
    pythons = given.python or [path for version in VERSIONS if not given.rows and (
        path := shutil.which(f"python{version}"))]
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        wheel = given.wheel or (_built(Path(folder)) if pythons else Path())
        found = [_tried(python, given.uv or "pip", wheel, Path(folder), given.skip) for python in pythons]
        if given.uv and pythons:
            found.append(_tried(pythons[0], "pip", wheel, Path(folder), given.skip))
    found += [TriedPython(**each) for path in given.rows for each in json.loads(path.read_text())]
    found = sorted((replace(each, installer=each.installer.replace(str(given.uv), "uv")) for each in found),
                   key=lambda each: (each.python.split(".")[1], each.installer))
    if given.json:
        write_file(given.json, json.dumps([asdict(each) for each in found], indent=1).encode())
    if given.page:
        write_file(given.page, with_origin(page(found), "make machines").encode())
    return int(any(verdict.startswith("**") for each in found for verdict in each.verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
