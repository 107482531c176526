"""The paper's table beside ours, and why they differ.

S. Wang et al., "Optimizing CNN Computation Using RISC-V Custom Instruction Sets for Edge Platforms", IEEE Trans.
Computers 73(5), 2024, doi 10.1109/TC.2024.3362060. Its figures here are those of the abstract.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.bench.baselines import BaselineFigures
from tilewright.bench.cases import SIDES, BenchCase
from tilewright.bench.runs import Figures
from tilewright.bench.speedups import of_core
from tilewright.bench.table_rows import Results
from tilewright.compiler.network.options import BEST
from tilewright.tools.markdown import cut, table

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
options, so its ratios may be of other things; ours name input, machine, engine and baseline. Its core, RI5CY, is the
ancestor of CV32E40P and may have PULP's SIMD instructions, and the abstract does not say whether its baseline uses
them: so ours are given over both. `nano` (16 multipliers, 4-byte bus) is the machine of the paper's class, as 16
multiplications make a tile. A tile takes one cycle here because the array takes in a tile of one channel in every
cycle, while units decoupled from the core load, requantise, pool and store; the paper's instructions are called from C
and run in batches. Latency is in cycles of simulated RTL here, without a clock assumed, and energy is activity counts
at published prices; the paper's processor is on an FPGA, and how latency and energy were measured there its abstract
does not say."""


def paper_section(results: Results, baselines: Mapping[str, tuple[BaselineFigures, ...]]) -> str:
    """Return the section."""
    rows = []
    for row in ROWS:
        for case, figures in _nearest(results, row):
            found = baselines[case.network]
            plain, simd = of_core(found, "cv32e40x"), of_core(found, "cv32e40p")
            rows.append((row.name, f"{row.latency_cut} %", cut(figures.cycles, plain.cycles) if plain else "–",
                         cut(figures.cycles, simd.cycles) if simd else "–", f"{row.energy_cut} %",
                         cut(figures.energy_uj, plain.energy_uj) if plain else "–", _where(case)))
    heads = ("network", "latency cut, paper", "ours, over plain C", "ours, over XPULP SIMD", "energy cut, paper",
             "ours, over plain C", "ours is of")
    return "\n\n".join(part for part in (TITLE, table(heads, rows) if rows else "", _tiles(results), WHY) if part)


TITLE = """## Beside the paper

S. Wang et al., IEEE Trans. Computers 73(5), 2024, doi 10.1109/TC.2024.3362060; figures of its abstract."""


def _where(case: BenchCase) -> str:
    return f"{case.network}, {SIDES[case.network]}, {case.machine.name}, engine {case.engine}"


def _nearest(results: Results, row: PaperRow) -> list[tuple[BenchCase, Figures]]:
    """Return the runs that a row of the paper is compared with: in RTL where there are any."""
    found = {}
    for case, figures in results.items():
        key = case.network, case.machine
        if case.options == BEST and case.network in row.ours and (case.engine == "rtl" or key not in found):
            found[key] = case, figures
    return list(found.values())


def _tiles(results: Results) -> str:
    """Return the cycles of F(2x2,3x3): for each machine of a layer of the largest network, in RTL if there is one."""
    chosen: dict[str, tuple[BenchCase, Figures]] = {}
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


def _weight(case: BenchCase, figures: Figures) -> tuple[bool, int]:
    return case.engine == "rtl", figures.macs
