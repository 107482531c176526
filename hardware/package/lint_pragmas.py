"""Verilator's warnings that the form of generated text causes, off on the lines that cause them and nowhere else."""

import hashlib
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from tilewright.errors import ToolError
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder, verilator_linter

__all__ = ["WAIVERS", "with_pragmas"]

WAIVERS = {
    "DECLFILENAME": "one file holds the modules of the whole hierarchy",
    "WIDTH": "operands are as wide as their values, and the context extends them (IEEE 1364-2005, 5.4); selections by"
             " shifting take the lower bits; a reduction's operand may be a vector",
    "UNUSEDSIGNAL": "instructions, structures and counters have fields that not every module reads",
    "CASEOVERLAP": "cases with don't-cares are in order of priority",
    "VARHIDDEN": "an instance may have the name of what it gives",
    "SYNCASYNCNET": "a reset of one side of a queue between two clocks reaches the other side at once",
    "UNOPTFLAT": "a vector whose upper bits follow from its lower ones is no loop",
}
"""Warnings by what a pragma calls them, and why they say nothing there; all others are in force."""

_WARNING = re.compile(r"^%Warning-([A-Z]+): (\S+):(\d+):\d+:", re.MULTILINE)
_WIDTHS = {"WIDTHEXPAND": "WIDTH", "WIDTHTRUNC": "WIDTH", "WIDTHXZEXPAND": "WIDTH"}
"""Newer names; Verilator 5.006 knows only what they were one part of."""


_SUM = re.compile(r"\s*assign .* [+-] ")
"""Verilator 5.006 also warns of a carry, one bit that is added to many."""


def with_pragmas(text: str, top: str, others: Mapping[str, str] | None = None) -> str:
    """Return Verilog in which each line that Verilator warns of in one of `WAIVERS` has the warning off, and on behind.

    Parameters
    ----------
    text
        Modules, among them ``top``.
    others
        Further modules that it needs, each in a file of its own.

    Raises
    ------
    ToolError
        If Verilator cannot read the text.
    ToolMissingError
        If there is no Verilator.
    """
    warned = defaultdict(set)
    for kind, number in _warnings(text, top, others or {}):
        warned[number].add(kind)
    lines = text.split("\n")
    for number, kinds in warned.items():
        rest = lines[number - 1].lstrip()
        indent = " " * (len(lines[number - 1]) - len(rest))
        off, on = ("".join(f"/* verilator lint_{way} {kind} */" for kind in sorted(kinds)) for way in ("off", "on"))
        lines[number - 1] = f"{indent}{off} {rest} {on}"
    used = {kind for kinds in warned.values() for kind in kinds}
    reasons = [f"// {kind}: {reason}." for kind, reason in WAIVERS.items() if kind in used]
    heading = ["// What a linter warns of is off on single lines alone:", *reasons, ""] if reasons else []
    return "\n".join([*heading, *lines])


def _warnings(text: str, top: str, others: Mapping[str, str]) -> list[tuple[str, int]]:
    """Return kinds and lines of the warnings that `WAIVERS` has, of an earlier run if it was of the same text."""
    linter, environment = verilator_linter()
    kept = cache_folder() / "lint" / f"{hashlib.sha256(f'{linter}{top}{text}{dict(others)}'.encode()).hexdigest()}.txt"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, f"{name}.v") for name in (top, *others)]
            for path, each in zip(paths, (text, *others.values()), strict=True):
                path.write_text(each)
            done = subprocess.run([linter, "--lint-only", "-Wall", "-Wno-fatal", "--top-module", top,
                                   *map(str, paths)],
                                  env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(f"Verilator could not read {top}: {done.stderr.strip()[-400:]}")
        write_if_changed(kept, done.stderr)
    found = [(_WIDTHS.get(kind, kind), int(number)) for kind, file, number in _WARNING.findall(kept.read_text())
             if Path(file).stem == top]
    sums = [("WIDTH", number) for number, line in enumerate(text.splitlines(), 1) if _SUM.match(line)]
    return [*(each for each in found if each[0] in WAIVERS), *sums]
