"""The sections on speed: what the baselines take, and what each network saves over each of them."""

from collections.abc import Mapping

from tilewright.bench.baselines import TITLES, BaselineFigures
from tilewright.bench.cases import SIDES
from tilewright.bench.runs import Figures
from tilewright.bench.table_rows import PLACE, Results, best, energy, place
from tilewright.sim.verilator.build import CoreName
from tilewright.tools.markdown import cut, section

Baselines = Mapping[str, tuple[BaselineFigures, ...]]

WHAT_THEY_ARE = """C at -O3 on a core alone, in the same simulator, with the same bits as result: plain on CV32E40X,
and with XPULP's SIMD instructions on CV32E40P. Their memory never waits, and their energy charges no loads and stores:
both in their favour. An instruction of CV32E40P is taken to cost more than one of CV32E40X, by an assumed factor
(`energy/baseline_energy.py`). Networks whose run would take over ten minutes are *in parts*: each distinct layer is
run once, large ones for a few rows and channels, and the cycles are scaled (`runtime/baseline/scaling.py`)."""


WHAT_THEY_SHOW = """Over both baselines below; `~` marks those that were run in parts and scaled. *Latency cut* is the
share of their cycles that is saved."""


def baselines_section(baselines: Baselines) -> str:
    """Return what the baselines took."""
    rows = [[f"{network}, {SIDES[network]}", each.name, "rtl", f"{each.measured_layers} of {each.layers}",
             f"{each.cycles:,}", f"{each.instructions:,}", f"{each.cycles / each.macs:.2f}", energy(each),
             "yes" if each.matches else "**no**"]
            for network, found in baselines.items() for each in found]
    heads = ("network, input", "baseline", "engine", "layers run whole", "cycles", "instructions", "cycles per MAC",
             "energy, µJ (range)", "equal to the integer reference")
    return section("Baselines", WHAT_THEY_ARE, heads, rows, left=3)


def speedup_section(results: Results, baselines: Baselines) -> str:
    """Return what each network saves over each baseline there is."""
    rows = [[*place(case), f"{each.cycles:,}", *_over(each, baselines[case.network], "cv32e40x"),
             *_over(each, baselines[case.network], "cv32e40p"),
             *(_energy_cut(each, baselines[case.network], core) for core in TITLES)]
            for case, each in best(results) if baselines[case.network]]
    heads = (*PLACE, "cycles", "plain C, cycles", "speed-up over plain C", "latency cut over plain C",
             "XPULP SIMD, cycles", "speed-up over XPULP SIMD", "latency cut over XPULP SIMD", "energy cut over plain C",
             "energy cut over XPULP SIMD")
    return section("Speed-up", WHAT_THEY_SHOW, heads, rows)


def of_core(found: tuple[BaselineFigures, ...], core: CoreName) -> BaselineFigures | None:
    """Return the baseline on ``core``, if it was run."""
    return next((each for each in found if each.core == core), None)


def _over(figures: Figures, found: tuple[BaselineFigures, ...], core: CoreName) -> list[str]:
    other = of_core(found, core)
    if other is None:
        return ["–"] * 3
    mark = "~" if other.in_parts else ""
    return [f"{mark}{other.cycles:,}", f"{other.cycles / figures.cycles:,.1f} ×", cut(figures.cycles, other.cycles)]


def _energy_cut(figures: Figures, found: tuple[BaselineFigures, ...], core: CoreName) -> str:
    other = of_core(found, core)
    return "–" if other is None else cut(figures.energy_uj, other.energy_uj)
