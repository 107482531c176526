"""Static RAM by CACTI 7: energy, leakage and area of a grid of macros, written as ``energy/technology/sram.toml``.

CACTI's source comes in the wheel hwcomponents-cacti and is built here. Its notice forbids selling it, so it is run at
calibration time, and only numbers are kept.
"""

import csv
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tilewright.energy.sram import COLUMNS, SramPoint
from tilewright.hardware.gates.cells.wheels import unpacked_wheel
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import ToolMissingError, cache_folder

__all__ = ["TABLES", "Macro", "run", "write_table"]

_WHEEL = ("hwcomponents-cacti", "1.0.40")
_SIZES = tuple(1 << exponent for exponent in range(6, 21))
_WIDTHS = (8, 32, 64, 128)
TABLES = {
    "lstp90": (90, "lstp"),
    "lstp65": (65, "lstp"),
    "lstp45": (45, "lstp"),
    "hp45": (45, "hp"),
}
"""Name of a table: feature size in nanometres, and CACTI's flavour of device: lstp low standby power, hp fast."""

_TIMEOUT_SECONDS = 120
_Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Macro:
    """A RAM with one read-write port, as CACTI is asked for it."""

    nanometres: int
    flavour: str
    size: int
    bits: int


def write_table(target: Path, progress: _Progress = lambda *_: None) -> None:
    """Run CACTI on every macro of ``TABLES`` and write the table; results are cached, one by one.

    Raises
    ------
    ToolMissingError
        If CACTI cannot be fetched or built.
    """
    text = _HEADER
    asked = [(name, list(_grid(nanometres, flavour))) for name, (nanometres, flavour) in TABLES.items()]
    total, done = sum(len(macros) for _, macros in asked), 0
    for name, macros in asked:
        rows = []
        for macro in macros:
            progress(f"{macro.size} bytes, {macro.bits} bits, {macro.nanometres} nm {macro.flavour}", done, total)
            point = run(macro)
            done += 1
            if point is not None:
                rows.append((macro.size, macro.bits, point))
        text += _section(name, *TABLES[name], rows)
    write_if_changed(target, text)


def run(macro: Macro) -> SramPoint | None:
    """Return CACTI's figures of a macro, from the cache if they are there; None where it finds no organisation."""
    program = _built()
    text = _configuration(macro, program.parent.parent / "default_cfg.cfg")
    key = hashlib.sha256(f"{_WHEEL} {text}".encode()).hexdigest()[:24]
    kept = cache_folder() / "cacti" / f"{key}.csv"
    if not kept.exists():
        write_if_changed(kept, _call(program, text))
    rows = list(csv.DictReader(kept.read_text().splitlines()))
    if not rows:
        return None
    found = {name.strip(): float(rows[-1][name]) for name in rows[-1] if name and name.strip() in _FACTORS}
    return SramPoint(*(found[name] * factor for name, factor in _FACTORS.items()))


_FACTORS = {"Dynamic read energy (nJ)": 1e3, "Dynamic write energy (nJ)": 1e3,
            "Standby leakage per bank(mW)": 1e3, "Area (mm2)": 1e6}
"""CACTI's columns in the order of SramPoint's fields, and the factors to its units."""


def _grid(nanometres: int, flavour: str) -> Iterator[Macro]:
    for bits in _WIDTHS:
        for size in _SIZES:
            yield Macro(nanometres, flavour, size, bits)


def _configuration(macro: Macro, defaults: Path) -> str:
    """Return CACTI's input: the wheel's defaults (300 K, least energy), then what is asked for."""
    # The defaults lack a quotation mark in their last line of these.
    text = defaults.read_text().replace('peripheral type - "itrs-lstp\n', 'peripheral type - "itrs-lstp"\n')
    return text.replace('"itrs-lstp"', f'"itrs-{macro.flavour}"') + "\n" + "\n".join((
        f"-size (bytes) {macro.size}", "-read-write port  1", f"-block size (bytes) {macro.bits // 8}",
        f"-technology (u) {macro.nanometres / 1000:g}", f"-output/input bus width  {macro.bits}", "-UCA bank 1",
        '-cache type "ram"', "-tag size (b) 0", "-associativity 1", ""))


def _call(program: Path, configuration: str) -> str:
    """Return the table that CACTI writes, empty where it says that there is no organisation for the macro."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "macro.cfg"
        asked.write_text(configuration)
        # It reads its process parameters from the folder it is started in.
        ended = subprocess.run([str(program), "-infile", str(asked)], cwd=program.parent, capture_output=True,
                               text=True, check=False, timeout=_TIMEOUT_SECONDS)
        answer = asked.with_name("macro.cfg.out")
        if answer.exists():
            return answer.read_text()
        if "no valid data array organizations found" in ended.stdout + ended.stderr:
            return ""
        raise ToolMissingError(f"CACTI must write a table of results, and wrote none: {ended.stdout[-200:]!r}")


def _built() -> Path:
    """Return the path of CACTI, built from the wheel's source if it is not there."""
    sources = unpacked_wheel(*_WHEEL) / "hwcomponents_cacti" / "cacti"
    program = sources / "cacti-built"
    if program.exists():
        return program
    for tool in ("make", "g++"):
        if shutil.which(tool) is None:
            raise ToolMissingError(f"CACTI is built with {tool}, which is not on PATH; install {tool}")
    (sources / "obj_opt").mkdir(exist_ok=True)
    built = subprocess.run(["make", "-f", "cacti.mk", "TAG=opt", "OPT=-O2 -DNTHREADS=1"], cwd=sources,
                           capture_output=True, text=True, check=False)
    made = sources / "obj_opt" / "cacti"
    if built.returncode != 0 or not made.exists():
        raise ToolMissingError(f"CACTI could not be built: {built.stderr[-300:]!r}")
    return made.replace(program)


_HEADER = f"""\
# Static RAM by CACTI 7 ({_WHEEL[0]} {_WHEEL[1]}): macros with one read-write port, 300 K, least energy of access.
#
# Written by: tilewright calibrate --tech sram. Technologies take a table and scale it ([sram] in their files). Energy
# of a read and of a write in picojoules, leakage in microwatts, area in square micrometres. Macros that are missing
# have too few words for CACTI to lay out.
"""


def _section(name: str, nanometres: int, flavour: str, rows: list[tuple[int, int, SramPoint]]) -> str:
    """Return the part of the file with one table."""
    words = {"lstp": "low standby power", "hp": "high performance"}[flavour]
    lines = [f"\n[table.{name}]", f'node = "{nanometres} nm, {words} (ITRS {flavour})"',
             f'source = "CACTI 7 in {_WHEEL[0]} {_WHEEL[1]}"',
             f"columns = [{', '.join(repr(column) for column in COLUMNS)}]".replace("'", '"'), "points = ["]
    for size, bits, point in rows:
        values = (point.read_pj, point.write_pj, point.leakage_uw, point.area_um2)
        lines.append(f"    [{size}, {bits}, {', '.join(f'{value:.4g}' for value in values)}],")
    return "\n".join([*lines, "]", ""])
