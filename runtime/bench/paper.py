"""The paper's table beside ours, and why they differ.

S. Wang et al., "Optimizing CNN Computation Using RISC-V Custom Instruction Sets for Edge Platforms", IEEE Trans.
Computers 73(5), 2024, doi 10.1109/TC.2024.3362060. Its figures here are those of the abstract.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.compiler.options import BEST
from tilewright.runtime.bench.baselines import BaselineFigures
from tilewright.runtime.bench.cases import SIDES, Case
from tilewright.runtime.bench.runs import Figures

TILE_CYCLES_BEFORE, TILE_CYCLES = 140, 21
"""Of the paper, for F(2x2,3x3): without and with its instruction CONV23."""


@dataclass(frozen=True, slots=True)
class PaperRow:
    """Cuts in per cent that the paper states for a network, and ours that come nearest to it."""

    name: str
    latency_cut: float
    energy_cut: float
    ours: tuple[str, ...]


ROWS = (PaperRow("LeNet-5", 76.6, 74.8, ("lenet5", "lenet5_accel")),
        PaperRow("VGG16", 88.8, 87.8, ("vgg16-32", "vgg16-224")),
        PaperRow("ResNet18", 87.1, 85.1, ("resnet18-32", "resnet18-224")))
"""LeNet-5 in both forms: as published, and with pairs of 3x3 kernels for each 5x5, as the paper's idea wants it."""

WHY = """Why they differ: what is public of the paper states no input sizes, data width, clock, buffers or compiler
options, so its ratios may be of other things; ours name input, machine, engine and baseline. `nano` (16 multipliers,
4-byte bus) is the machine of the paper's class, as 16 multiplications make a tile. A tile takes one cycle here because
the array takes in a tile of one channel in every cycle, while units decoupled from the core load, requantise, pool and
store; the paper's instructions are called from C and run in batches. Both start from a core of the same line (RI5CY
there, CV32E40X here). Energy is by activity and published prices here, and of an FPGA there."""


def paper_section(results: Mapping[Case, Figures], baselines: Mapping[str, tuple[BaselineFigures, ...]]) -> str:
    """Return the section; ours are over the first of the baselines, the scalar one."""
    heads = ("network", "latency cut, paper", "ours", "energy cut, paper", "ours", "ours is of", "over")
    lines = [heads, (":--", "--:", "--:", "--:", "--:", ":--", ":--")]
    for row in ROWS:
        for case, figures in _nearest(results, row):
            other = next(iter(baselines[case.network]), None)
            ours = (cut(figures.cycles, other.cycles), cut(figures.energy_uj, other.energy_uj)) if other else ("–", "–")
            lines.append((row.name, f"{row.latency_cut} %", ours[0], f"{row.energy_cut} %", ours[1], _where(case),
                          other.name if other else "no baseline was run"))
    tiles = _tiles(results)
    parts = [TITLE, "\n".join(f"| {' | '.join(line)} |" for line in lines), tiles, WHY]
    return "\n\n".join(part for part in parts if part)


TITLE = """## Beside the paper

S. Wang et al., IEEE Trans. Computers 73(5), 2024, doi 10.1109/TC.2024.3362060; figures of its abstract."""


def cut(new: float, old: float) -> str:
    """Return the share of ``old`` that ``new`` saves: at least three digits of what is left."""
    left = 100 * new / old
    return f"{100 - left:.{1 if left >= 10 else 2 if left >= 1 else 3}f} %"


def _where(case: Case) -> str:
    return f"{case.network}, {SIDES[case.network]}, {case.machine.name}, engine {case.engine}"


def _nearest(results: Mapping[Case, Figures], row: PaperRow) -> list[tuple[Case, Figures]]:
    """Return the runs that a row of the paper is compared with: in RTL where there are any."""
    found = {}
    for case, figures in results.items():
        key = case.network, case.machine
        if case.options == BEST and case.network in row.ours and (case.engine == "rtl" or key not in found):
            found[key] = case, figures
    return list(found.values())


def _tiles(results: Mapping[Case, Figures]) -> str:
    """Return the cycles of F(2x2,3x3): for each machine of a layer of the largest network, in RTL if there is one."""
    chosen: dict[str, tuple[Case, Figures]] = {}
    for case, figures in results.items():
        if case.options != BEST or figures.tile_cycles is None:
            continue
        known = chosen.get(case.machine.name)
        if known is None or _weight(case, figures) > _weight(*known):
            chosen[case.machine.name] = case, figures
    lines = ["| cycles per tile of F(2×2,3×3) and pair of channels | of | lanes |", "| --: | :-- | --: |",
             f"| {TILE_CYCLES_BEFORE} | paper, before | |", f"| {TILE_CYCLES} | paper, CONV23 | |"]
    lines += [f"| {figures.tile_cycles:.3f} | conv23 layer with most MACs of {_where(case)}; all overheads included | "
              f"{case.machine.lanes} |" for case, figures in chosen.values()]
    return "\n".join(lines) if chosen else ""


def _weight(case: Case, figures: Figures) -> tuple[bool, int]:
    return case.engine == "rtl", figures.macs
