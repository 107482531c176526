"""The paper's table beside ours, and why the figures differ.

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
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE
from tilewright.tools.markdown import cut, table

__all__ = ["ROWS", "TILE_CYCLES", "TILE_CYCLES_BEFORE", "PaperRow", "paper_table", "run_named", "tile_cycles"]

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

def paper_table(results: Results, baselines: Mapping[str, tuple[BaselineFigures, ...]]) -> str:
    """Return the paper's cuts in latency and energy beside ours; nothing if none of its networks was run."""
    rows = []
    for row in ROWS:
        for case, figures in _nearest(results, row):
            found = baselines[case.network]
            plain, simd = of_core(found, HOST_CORE), of_core(found, XPULP_CORE)
            rows.append((row.name, f"{row.latency_cut} %", cut(figures.cycles, plain.cycles) if plain else "–",
                         cut(figures.cycles, simd.cycles) if simd else "–", f"{row.energy_cut} %",
                         cut(figures.energy.total_uj, plain.energy.total_uj) if plain else "–", run_named(case)))
    heads = ("network", "latency cut, paper", "ours, over plain C", "ours, over XPULP SIMD", "energy cut, paper",
             "ours, over plain C", "ours is of")
    return table(heads, rows) if rows else ""


def run_named(case: BenchCase) -> str:
    """Return network, input, machine and engine of a run in words."""
    return f"{case.network}, {SIDES[case.network]}, {case.machine.name}, engine {case.engine}"


def _nearest(results: Results, row: PaperRow) -> list[tuple[BenchCase, Figures]]:
    """Return the runs that a row of the paper is compared with: in RTL where there are any."""
    found = {}
    for case, figures in results.items():
        key = case.network, case.machine
        if case.options == BEST and case.network in row.ours and (case.engine == "rtl" or key not in found):
            found[key] = case, figures
    return list(found.values())


def tile_cycles(results: Results) -> list[tuple[BenchCase, Figures]]:
    """Return the runs whose tiles are shown: for each machine that of the largest network, in RTL if there is one."""
    chosen: dict[str, tuple[BenchCase, Figures]] = {}
    for case, figures in results.items():
        if case.options != BEST or figures.tile_cycles is None:
            continue
        known = chosen.get(case.machine.name)
        if known is None or _weight(case, figures) > _weight(*known):
            chosen[case.machine.name] = case, figures
    return list(chosen.values())


def _weight(case: BenchCase, figures: Figures) -> tuple[bool, int]:
    return case.engine == "rtl", figures.macs
