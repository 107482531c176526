"""The tutorial docs/your-model.md is true: its blocks are run as they stand, in order, in an empty folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "your-model.md"
BLOCKS = re.findall(r"^```(python|sh)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)

# What each command must show, besides ending well.
SHOWN = {
    "check": ("it can be compiled", "it fits"),
    "compare": ("the engine equals the integer reference in every one", "top-1 agrees"),
    "evaluate": ("ONNX Runtime's",),
    "run": ("compared with ONNX Runtime", "energy: "), "compile": ("out/mynet",),
    "simulate": ("compared with ONNX Runtime",),
}


def test_the_page_has_all_steps():
    commands = [shlex.split(line)[1] for kind, text in BLOCKS if kind == "sh" for line in text.splitlines()]
    assert commands == ["check", "compare", "evaluate", "run", "check", "run", "compile", "simulate"]
    assert [kind for kind, _ in BLOCKS].count("python") == 4


@pytest.mark.slow
def test_the_tutorial_runs_as_written(tmp_path):
    pytest.importorskip("torch")
    binaries = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "200",
                                "PYTHONWARNINGS": "ignore"}
    for kind, text in BLOCKS:
        lines = [[sys.executable, "-c", text]] if kind == "python" else map(shlex.split, text.splitlines())
        for command in lines:
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
            for shown in SHOWN[command[1]] if kind == "sh" else ():
                assert shown in done.stdout, f"{command} must show {shown!r}: {done.stdout}"
    assert (tmp_path / "report.json").is_file()
