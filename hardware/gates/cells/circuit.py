"""Circuit simulation of a cell: copies side by side in one run of ngspice, each with supply and stimulus of its own.

A copy is told apart by its number; what is measured is charge (ampere seconds) through its sources, delays and slews.
"""

import hashlib
import json
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.errors import ToolError
from tilewright.hardware.gates.cells.sky130_cells import CORNER, TEMPERATURE, VOLTAGE, CellSource, models
from tilewright.tools.debian import debian_tool
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder

__all__ = ["GROUND", "HIGH", "CharacterisationError", "CircuitDeck", "input_source", "step"]

_TIMEOUT_SECONDS = 3600
GROUND = "0"
HIGH = "high"
_RESULT = re.compile(r"^(\w+)\s+=\s+([-+.\deE]+)", re.MULTILINE)


class CharacterisationError(ToolError):
    """A circuit could not be simulated, or gave no sensible figures."""


@dataclass(slots=True)
class CircuitDeck:
    """A deck under construction: copies of one cell, and their measurements.

    Times are in nanoseconds, capacitances in picofarads.
    """

    source: CellSource
    end: float
    lines: list[str] = field(default_factory=list)
    measures: list[str] = field(default_factory=list)
    saved: list[str] = field(default_factory=list)
    copies: int = 0

    def copy(self, pins: dict[str, str], load: float, output: str) -> int:
        """Place a copy with its own supply; ``pins`` says what drives the inputs: a node, or the value of a source.

        Returns
        -------
        int
            Its number k: the supply is ``vs<k>``, the output's node ``o<k>``, that of a driven pin ``n<pin><k>``.
        """
        self.copies += 1
        k = self.copies
        nodes = {"VGND": GROUND, "VNB": GROUND, "VPB": f"s{k}", "VPWR": f"s{k}", output: f"o{k}"}
        for pin, drive in pins.items():
            nodes[pin] = drive
            if drive not in (GROUND, HIGH):
                nodes[pin] = f"n{pin}{k}".lower()
                self.lines.append(f"{input_source(pin, k)} {nodes[pin]} 0 {drive}")
                self.saved += [f"i({input_source(pin, k)})".lower(), nodes[pin]]
        self.lines += [f"vs{k} s{k} 0 {VOLTAGE}", f"cl{k} o{k} 0 {load}p",
                       f"x{k} {' '.join(nodes[pin] for pin in self.source.pins)} {self.source.subcircuit}"]
        self.saved += [f"i(vs{k})", f"o{k}"]
        return k

    def charge(self, name: str, source: str, start: float, stop: float) -> None:
        """Measure the charge that ``source`` delivers from ``start`` to ``stop``."""
        self.measures.append(f"meas tran {name} integ i({source}) from={start:.4f}n to={stop:.4f}n")

    def delay(self, name: str, cause: str, cause_edge: str, effect: str, effect_edge: str, after: float) -> None:
        """Measure from half the swing of one node to half that of another; edges are ``rise`` or ``fall``."""
        half = VOLTAGE / 2
        self.measures.append(f"meas tran {name} trig v({cause}) val={half} td={after:.4f}n {cause_edge}=1 "
                             f"targ v({effect}) val={half} td={after:.4f}n {effect_edge}=1")

    def slew(self, name: str, node: str, edge: str, after: float) -> None:
        """Measure from 20 to 80 % of the swing, or back."""
        low, high = 0.2 * VOLTAGE, 0.8 * VOLTAGE
        first, last = (low, high) if edge == "rise" else (high, low)
        self.measures.append(f"meas tran {name} trig v({node}) val={first} td={after:.4f}n {edge}=1 "
                             f"targ v({node}) val={last} td={after:.4f}n {edge}=1")

    def deck(self) -> str:
        """Return the whole as ngspice's input; leakage is the supplies' current at rest."""
        rest = [f"print i(vs{k})" for k in range(1, self.copies + 1)]
        return "\n".join([
            f"* {self.source.subcircuit}", f'.lib "{models()}" {CORNER}', f'.include "{self.source.path}"',
            # gmin: the default conductance across each junction leaks more than the transistors do.
            f".option temp={TEMPERATURE} method=gear reltol=5e-4 gmin=1e-15", f"v{HIGH} {HIGH} 0 {VOLTAGE}",
            *self.lines, ".control", "op", *rest, f"save {' '.join(self.saved)}", f"tran 5p {self.end}n 0 25p",
            *self.measures, "quit", ".endc", ".end", ""])

    def run(self) -> dict[str, float]:
        """Return the measurements by name, and ``leak<k>`` in amperes, from the cache if it ran before."""
        deck = self.deck()
        # Where the sources lie does not change the figures.
        key = re.sub(r'"[^"]*/(?=[^/"]+")', '"', deck)
        kept = cache_folder() / "characterised" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
        if not kept.exists():
            write_if_changed(kept, json.dumps(self._simulated(deck)))
        found: dict[str, float] = json.loads(kept.read_text())
        return found

    def _simulated(self, deck: str) -> dict[str, float]:
        with tempfile.TemporaryDirectory() as folder:
            asked = Path(folder) / "cell.sp"
            asked.write_text(deck)
            ended = subprocess.run([str(debian_tool("ngspice")), "-b", str(asked)], cwd=folder, capture_output=True,
                                   text=True, check=False, timeout=_TIMEOUT_SECONDS)
        found = {match[1].lower(): float(match[2]) for match in _RESULT.finditer(ended.stdout)}
        for number, value in re.findall(r"^i\(vs(\d+)\)\s+=\s+([-+.\deE]+)", ended.stdout, re.MULTILINE):
            found[f"leak{number}"] = abs(float(value))
        wanted = {line.split()[2].lower() for line in self.measures} | {f"leak{k}" for k in range(1, self.copies + 1)}
        if missing := sorted(wanted - set(found)):
            told = (ended.stderr.strip().splitlines() or ended.stdout.strip().splitlines() or ["nothing"])[-1]
            raise CharacterisationError(f"Simulation of {self.source.subcircuit} must give {len(wanted)} figures, and "
                                        f"{len(missing)} are missing, {missing[0]} first; ngspice said: {told}")
        return {name: found[name] for name in sorted(wanted)}


def input_source(pin: str, copy: int) -> str:
    """Return the name of the source that drives a pin of a copy; the supply's, ``vs``, is no pin's."""
    return f"v{pin}{copy}" if pin != "S" else f"vselect{copy}"


def step(start: str, *changes: tuple[float, float]) -> str:
    """Return a source that changes its level at each (time, duration of the full swing), in nanoseconds."""
    level = {"low": 0.0, "high": VOLTAGE}[start]
    points = [f"0 {level}"]
    for time, ramp in changes:
        points.append(f"{time:.4f}n {level}")
        level = VOLTAGE - level
        points.append(f"{time + ramp:.4f}n {level}")
    return f"PWL({' '.join(points)})"


