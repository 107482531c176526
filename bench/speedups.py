"""The tables of speed: cycles of the baselines, and the saving of each network over each of them."""

from collections.abc import Mapping

from tilewright.bench.baselines import TITLES, BaselineFigures
from tilewright.bench.cases import SIDES
from tilewright.bench.runs import Figures
from tilewright.bench.table_rows import PLACE, Results, best, energy, place, run_table
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE, CoreName
from tilewright.tools.markdown import cut

__all__ = ["Baselines", "baseline_table", "of_core", "speedup_table"]

Baselines = Mapping[str, tuple[BaselineFigures, ...]]

def baseline_table(baselines: Baselines) -> str:
    """Return what the baselines took."""
    rows = [[f"{network}, {SIDES[network]}", each.name, "rtl", f"{each.measured_layers} of {each.layers}",
             f"{each.cycles:,}", f"{each.instructions:,}", f"{each.cycles / each.macs:.2f}", energy(each),
             "yes" if each.matches else "**no**"]
            for network, found in baselines.items() for each in found]
    heads = ("network, input", "baseline", "engine", "layers run whole", "cycles", "instructions", "cycles per MAC",
             "energy, µJ (range)", "equal to the integer reference")
    return run_table(heads, rows, left=3)


def speedup_table(results: Results, baselines: Baselines) -> str:
    """Return what each network saves over each baseline there is."""
    rows = [[*place(case), f"{each.cycles:,}", *_over(each, baselines[case.network], HOST_CORE),
             *_over(each, baselines[case.network], XPULP_CORE),
             *(_energy_cut(each, baselines[case.network], core) for core in TITLES)]
            for case, each in best(results) if baselines[case.network]]
    heads = (*PLACE, "cycles", "plain C, cycles", "speed-up over plain C", "latency cut over plain C",
             "XPULP SIMD, cycles", "speed-up over XPULP SIMD", "latency cut over XPULP SIMD", "energy cut over plain C",
             "energy cut over XPULP SIMD")
    return run_table(heads, rows)


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
    return "–" if other is None else cut(figures.energy.total_uj, other.energy.total_uj)
