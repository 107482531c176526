"""The report of a synthesis: area by block, whether it fits, the longest path, and the duration of each step."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tilewright.hardware.synthesis.area_blocks import AREA_BLOCKS
from tilewright.hardware.synthesis.cached_steps import FinishedStep
from tilewright.hardware.synthesis.layout.placed_results import BlockWires
from tilewright.hardware.synthesis.sources import SynthesisSources
from tilewright.hardware.synthesis.targets import StandardCells, Target

__all__ = [
    "AREA", "FLIP_FLOPS", "MEMORY", "CriticalPath", "PlacedCell", "PlacedDesign", "StepTime",
    "SynthesisReport", "SynthesisRequest", "Timing",
]

AREA = "area"
"""Resource of standard cells: µm² of logic and flip-flops."""

FLIP_FLOPS = "flip-flops"
"""Resource of standard cells: how many."""

MEMORY = "memory"
"""Resource of standard cells: µm² of static RAM macros."""


@dataclass(frozen=True, slots=True)
class SynthesisRequest:
    """A design to synthesise, the machine and the core in it, nextpnr's seed and goal, whether to place and to draw.

    ``any_collision``: a memory may give anything for a word that is read while it is written, which nothing uses
    (`sim.verilog.collisions` checks it); else logic around each block RAM gives the old word. For ECP5 alone.
    ``layout``: standard cells are placed too.
    """

    design: SynthesisSources
    machine: str
    with_core: bool = False
    seed: int = 1
    freq: float = 80.0
    place: bool = True
    floorplan: bool = False
    any_collision: bool = False
    layout: bool = False


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The longest path from register to register.

    Attributes
    ----------
    start, end : str
        Cells.
    start_block, end_block : str
    logic_ns, wire_ns : float
        Clock-to-output, cells and set-up; and wires. The latter are NaN where they were not looked at.
    cells : int
        Cells between the registers.
    """

    start: str
    end: str
    start_block: str
    end_block: str
    logic_ns: float
    wire_ns: float
    cells: int


@dataclass(frozen=True, slots=True)
class PlacedCell:
    """A cell on the device: its tile, the name of its place in that tile, and the block it belongs to."""

    x: int
    y: int
    place: str
    block: str


@dataclass(frozen=True, slots=True)
class Timing:
    """The highest frequency and its limit; ``method`` says how it was found, and what it leaves out."""

    fmax_mhz: float
    goal_mhz: float | None
    path: CriticalPath
    method: str


@dataclass(frozen=True, slots=True)
class PlacedDesign:
    """Standard cells in rows, and the wires that this asks for: placed, not routed, without a clock tree.

    Attributes
    ----------
    timing, without_wires : Timing
        Of the same netlist.
    width_um, height_um, utilisation : float
        Of the rows, and the share of them that cells fill; memories are points.
    coupling, coupling_range : float, and (float, float)
        Factor for neighbours on the same layer that is in the wires' capacitance, and what it may be.
    wires : mapping of str to BlockWires
    """

    timing: Timing
    without_wires: Timing
    width_um: float
    height_um: float
    utilisation: float
    coupling: float
    coupling_range: tuple[float, float]
    wires: Mapping[str, BlockWires]

    @property
    def all_wires(self) -> BlockWires:
        """Return the wires of all blocks."""
        return sum(self.wires.values(), BlockWires(0, 0.0, 0.0, 0.0))

    def low_and_high(self, capacitance: float) -> tuple[float, float]:
        """Return what a capacitance of wires may be, for the range of the coupling."""
        low, high = (capacitance * each / self.coupling for each in self.coupling_range)
        return low, high


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step: its title, its tool, and its seconds of processor time; ``kept`` if it ran earlier."""

    title: str
    tool: str
    seconds: float
    kept: bool

    @classmethod
    def of(cls, step: FinishedStep) -> "StepTime":
        """Return the report's entry for a finished step."""
        return cls(step.title, step.tool.short, step.seconds, step.kept)


@dataclass(frozen=True, slots=True)
class SynthesisReport:
    """Area, timing and steps of a design on a target.

    Attributes
    ----------
    units : mapping
        For each resource, in the tables' order, what it counts.
    blocks : mapping
        For each block how much of each resource.
    capacity : mapping
        For each device, smallest first, how much of each resource it has; empty for standard cells.
    logic_per : mapping
        Places of a LUT that one of another resource takes as well.
    registers_per : mapping
        Places of a flip-flop that one of another resource takes as well.
    seed : int or None
        Of place and route.
    cells : tuple of PlacedCell
        Where each cell lies, if the request asked for it; the JSON report goes without.
    folders : tuple of str
        Where the steps' files lie.
    placed : PlacedDesign or None
        Of standard cells, if they were placed.
    """

    target: str
    target_title: str
    design: str
    machine: str
    with_core: bool
    units: Mapping[str, str]
    blocks: Mapping[str, Mapping[str, float]]
    capacity: Mapping[str, Mapping[str, float]]
    logic_per: Mapping[str, int]
    steps: tuple[StepTime, ...]
    folders: tuple[str, ...]
    timing: Timing | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()
    cells: tuple[PlacedCell, ...] = ()
    placed: PlacedDesign | None = None
    registers_per: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, request: SynthesisRequest, target: Target, *, units: Mapping[str, str], steps: Sequence[FinishedStep],
           blocks: Mapping[str, Mapping[str, float]], capacity: Mapping[str, Mapping[str, float]] | None = None,
           logic_per: Mapping[str, int] | None = None) -> "SynthesisReport":
        """Return the report on a request before any timing; blocks come in the tables' order."""
        return cls(target.name, target.title, request.design.name, request.machine, request.with_core, units,
                   {name: blocks[name] for name in AREA_BLOCKS if name in blocks}, capacity or {}, logic_per or {},
                   tuple(map(StepTime.of, steps)), tuple(str(step.folder) for step in steps),
                   registers_per={} if isinstance(target, StandardCells) else target.registers_per)

    def with_step(self, step: FinishedStep) -> "SynthesisReport":
        """Return the report with one step more."""
        return replace(self, steps=(*self.steps, StepTime.of(step)), folders=(*self.folders, str(step.folder)))

    def total(self, resource: str) -> float:
        """Return how much of a resource all blocks need."""
        return sum(block.get(resource, 0) for block in self.blocks.values())

    @property
    def fits(self) -> bool:
        """Tell whether a device was found that holds it; standard cells always do."""
        return not self.lacking

    @property
    def device(self) -> str | None:
        """Return the smallest device that holds it, if there is one."""
        for device, has in self.capacity.items():
            if all(self.needed(name) <= limit for name, limit in has.items()):
                return device
        return None

    def needed(self, resource: str) -> float:
        """Return the number of places that a resource needs in a device, with those that other resources take."""
        if resource == "LUT":
            return sum(self.size(block) for block in self.blocks.values())
        also = self.registers_per if resource == "FF" else {}
        return self.total(resource) + sum(self.total(name) * each for name, each in also.items())

    def size(self, block: Mapping[str, float]) -> float:
        """Return how large a block is as one figure: logic cells of an FPGA, or µm² with the memories."""
        if not self.capacity:
            return block[AREA] + block.get(MEMORY, 0)
        return block["LUT"] + sum(block[name] * each for name, each in self.logic_per.items())

    def shares(self) -> dict[str, float]:
        """Return the share of each resource of `device` that is needed; empty if there is no device."""
        has = self.capacity.get(self.device or "", {})
        return {name: self.needed(name) / limit for name, limit in has.items()}

    @property
    def lacking(self) -> str:
        """Return what the largest device lacks, as a sentence with figures; empty if it fits or there is no device."""
        if not self.capacity or self.device is not None:
            return ""
        device, has = list(self.capacity.items())[-1]
        named = {**self.units, "LUT": "logic cells", **({"FF": "places of flip-flops"} if self.registers_per else {})}
        lacks = [f"{self.needed(name):,.0f} {named[name]} of {limit:,}"
                 for name, limit in has.items() if self.needed(name) > limit]
        return f"{device} is too small: it would need {' and '.join(lacks)}"

    def to_json(self) -> dict[str, Any]:
        """Return everything as JSON types; unknown values are null."""
        data = asdict(replace(self, cells=()))
        del data["folders"], data["cells"]  # of this machine's cache, and a picture's
        data["total"] = {name: self.total(name) for name in self.units}
        data["fits"], data["device"], data["lacking"] = self.fits, self.device, self.lacking
        return _without_nan(data)


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and math.isnan(value) else value
