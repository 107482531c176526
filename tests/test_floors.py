"""Imports flow one way, heavy dependencies have one door each, and every file opens with its idea."""

import ast
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

CORES = {"pythondata_cpu_cv32e40p", "pythondata_cpu_cv32e40x"}

# Who may import whom: floor → (floors of ours below it, packages of others).
FLOORS = {
    "isa": (set(), set()),
    "models": (set(), {"numpy", "onnx", "onnxruntime", "sklearn", "torch"}),
    "rtl": ({"isa"}, {"amaranth"}),
    # google: protobuf, whose error tells that a file is no ONNX.
    "compiler": ({"isa"}, {"google", "numpy", "onnx", "onnx_ir", "onnxruntime", "onnxscript", "ziglang"}),
    "sim": ({"isa", "rtl"}, {"numpy", "amaranth", "cocotb", *CORES}),
    # models/ lends runtime/ the files of the built-in networks, and no torch.
    "runtime": ({"isa", "compiler", "sim", "models"}, {"numpy", "onnx", "onnxruntime", "rich", "typer"}),
}

# A heavy dependency and the files or folders that may import it.
DOORS = {
    "google": ("compiler/frontend.py",),
    "amaranth": ("rtl", "sim/elaborate.py"),
    "onnx": ("compiler/frontend.py", "compiler/onnx_clean.py", "compiler/onnx_faults.py", "compiler/onnx_shapes.py",
             "compiler/unary_tables.py", "models",
             "runtime/backend.py", "runtime/float_graph.py", "runtime/reference.py"),
    "onnx_ir": ("compiler/onnx_clean.py",),
    "onnxscript": ("compiler/onnx_clean.py",),
    "onnxruntime": ("compiler/unary_tables.py", "models", "runtime"),
    "torch": ("models",),
    "tilewright.rtl": ("rtl", "sim/elaborate.py"),
}

CODE = {".py", ".c", ".h", ".S", ".ld", ".cpp", ".sv", ".v"}
MAX_LINES = 500


def files(*suffixes: str) -> list[str]:
    """Return the project's source files with one of ``suffixes``, relative to the root; no empty ones."""
    folders = [*FLOORS, "tests"]
    return sorted(str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*")
                  if path.suffix in suffixes and path.stat().st_size)


def imported(source: str, path: str) -> set[str]:
    """Return the dotted names that ``source``, the text of ``path``, imports anywhere in it.

    ``from tilewright import sim`` counts as ``tilewright.sim``; relative imports are resolved.
    """
    package = ".".join(("tilewright", *Path(path).parent.parts))
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def offences(source: str, path: str) -> list[str]:
    """Return a sentence for each import in ``source`` that breaks FLOORS or DOORS."""
    floor = Path(path).parts[0]
    ours, others = FLOORS[floor]
    found = []
    for name in sorted(imported(source, path)):
        top, *rest = name.split(".")
        if top == "tilewright":
            # tilewright.__version__ and the like belong to no floor.
            if rest and rest[0] in FLOORS and rest[0] not in ours | {floor}:
                found.append(f"{path} imports {name}: {floor}/ must not import {rest[0]}/")
        elif top not in others and top not in sys.stdlib_module_names:
            found.append(f"{path} imports {name}: {floor}/ must not import {top}")
        for door, openings in DOORS.items():
            if f"{name}.".startswith(f"{door}.") and not any(
                    path == opening or path.startswith(f"{opening}/") for opening in openings):
                found.append(f"{path} imports {name}: only {' and '.join(openings)} may import {door}")
    return found


@pytest.mark.parametrize("path", [p for p in files(".py") if not p.startswith("tests/")])
def test_imports_stay_on_or_below_their_floor(path):
    assert offences((ROOT / path).read_text(), path) == []


@pytest.mark.parametrize(("path", "source", "offence"), [
    ("isa/machine.py", "import numpy as np", "isa/ must not import numpy"),
    ("isa/machine.py", "from tilewright.rtl.top import Top", "isa/ must not import rtl/"),
    ("rtl/top.py", "from tilewright import sim", "rtl/ must not import sim/"),
    ("rtl/top.py", "from ..sim.rtl import run", "rtl/ must not import sim/"),
    ("rtl/top.py", "def f():\n    import tilewright.compiler.graph", "rtl/ must not import compiler/"),
    ("compiler/graph.py", "import onnx", "may import onnx"),
    ("compiler/emit/c.py", "from onnx import helper", "may import onnx"),
    ("sim/fast.py", "from amaranth.lib import wiring", "only rtl and sim/elaborate.py may import amaranth"),
    ("sim/fast.py", "from tilewright.rtl import top", "only rtl and sim/elaborate.py may import tilewright"),
    ("runtime/session.py", "import torch", "runtime/ must not import torch"),
])
def test_an_import_from_above_is_found(path, source, offence):
    assert any(offence in sentence for sentence in offences(source, path))


@pytest.mark.parametrize(("path", "source"), [
    ("isa/machine.py", "from dataclasses import dataclass"),
    ("compiler/frontend.py", "import onnx.helper"),
    ("sim/elaborate.py", "from amaranth.back import verilog\nfrom tilewright.rtl.top import Top"),
    ("runtime/session.py", "from tilewright import __version__\nfrom tilewright.sim import fast"),
])
def test_an_import_from_below_is_allowed(path, source):
    assert offences(source, path) == []


def opens_with_its_idea(text: str, suffix: str) -> bool:
    """Tell whether the first line of ``text`` is a docstring or comment of at least three words."""
    first, *rest = text.splitlines() or [""]
    if suffix == ".py":
        # Amaranth reads its pragma from the first line and no other.
        if first.startswith("# amaranth:"):
            first = rest[0]
        opening = '"""'
    else:
        opening = "/" if suffix != ".S" else ("#", "/")
    return first.startswith(opening) and len(first.split()) >= 3


@pytest.mark.parametrize("path", files(*CODE))
def test_every_file_is_short_and_opens_with_its_idea(path):
    text = (ROOT / path).read_text()
    assert opens_with_its_idea(text, Path(path).suffix), f"line 1 of {path} must say what the file is about"
    assert len(text.splitlines()) <= MAX_LINES, f"{path} must have at most {MAX_LINES} lines"


@pytest.mark.parametrize(("text", "suffix", "expected"), [
    ('"""Round and saturate."""\n', ".py", True),
    ('# amaranth: UnusedElaboratable=no\n"""Requantize under back-pressure."""\n', ".py", True),
    ('"""\nRound and saturate.\n"""\n', ".py", False),
    ("import numpy\n", ".py", False),
    ("", ".py", False),
    ("/* Generated by isa/emit_c.py. */\n", ".h", True),
    ("// The main memory.\n", ".cpp", True),
    ("#include <cstdint>\n", ".cpp", False),
])
def test_an_opening_line_is_recognised(text, suffix, expected):
    assert opens_with_its_idea(text, suffix) is expected
