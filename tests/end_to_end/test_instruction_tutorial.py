"""The tutorial docs/your-instruction.md is true: its blocks are run as they stand, in order, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "your-instruction.md"
BLOCKS = re.findall(r"^```(python|sh)(?: (\S+))?\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)

# What each command must show, besides ending well.
SHOWN = {"run": "compared with ONNX Runtime", "extension": "ceiling", "diff": "only in the first"}
LEFT_OUT = {"synth"}


def test_the_page_has_all_steps():
    commands = [shlex.split(line)[1] for kind, _, text in BLOCKS if kind == "sh" for line in text.splitlines()]
    assert commands == ["run", "extension", "extension", "run", "run", "diff", "synth", "synth", "run", "run"]
    assert [name for kind, name, _ in BLOCKS if kind == "python"] == ["", "ceiling.py"]


@pytest.mark.slow
def test_the_tutorial_runs_as_written(tmp_path):
    binaries = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200"}
    for kind, name, text in BLOCKS:
        if name:
            (tmp_path / name).write_text(text)
            continue
        lines = [[sys.executable, "-c", text]] if kind == "python" else map(shlex.split, text.splitlines())
        for command in lines:
            if command[1] in LEFT_OUT:
                continue
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            shown = SHOWN[command[1]] if kind == "sh" else ""
            assert shown in done.stdout, f"{command} must show {shown!r}: {done.stdout}"
