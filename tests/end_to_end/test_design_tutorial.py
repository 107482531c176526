"""The tutorials docs/first-network.md and docs/your-design.md are true: their blocks are run in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(python|sh|toml)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# What the commands of each page must show, in order, besides ending well.
SHOWN = {
    "first-network.md": ("every element is equal", "every element is equal", "the engine equals the integer reference"),
    "your-design.md": ("predicted area", "every element is equal", "bound: compute → memory", "residual adder",
                       "65 MHz", "every element is equal", "Front of 24 designs"),
}


def blocks(page: str) -> list[tuple[str, str, str]]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", SHOWN)
def test_the_page_has_a_command_for_everything_that_must_be_shown(page):
    commands = [line for kind, _, text in blocks(page) if kind == "sh" for line in text.splitlines()]
    assert len(commands) == len(SHOWN[page])
    assert all(line.startswith("tilewright ") for line in commands)


@pytest.mark.slow
@pytest.mark.parametrize("page", SHOWN)
def test_the_tutorial_runs_as_written(page, tmp_path):
    binaries = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200"}
    shown = iter(SHOWN[page])
    for kind, name, text in blocks(page):
        if name:
            (tmp_path / name).write_text(text)
            continue
        lines = [[sys.executable, "-c", text]] if kind == "python" else map(shlex.split, text.splitlines())
        for command in lines:
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            wanted = next(shown) if kind == "sh" else ""
            assert wanted in done.stdout, f"{command} must show {wanted!r}: {done.stdout}"
