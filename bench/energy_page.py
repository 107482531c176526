"""The page on energy: networks, components, savings over both baselines and the gain of each choice, by technology.

It is priced from the counts of the benchmarks' runs (`bench.counted_work`), so nothing is simulated for it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tilewright.bench.baselines import TITLES, BaselineFigures
from tilewright.bench.benchmarks_page import pairs
from tilewright.bench.cases import COMPARED, NO_REUSE, NO_WINOGRAD, UNFUSED, BenchCase
from tilewright.bench.counted_work import energy_of
from tilewright.bench.paper import ROWS
from tilewright.bench.runs import Figures
from tilewright.bench.speedups import Baselines, of_core
from tilewright.bench.table_rows import PLACE, Results, best, place, run_table
from tilewright.energy.baseline_energy import energy_of_baseline
from tilewright.energy.energies import Amount, EnergyEstimate
from tilewright.energy.estimate import Technology
from tilewright.energy.pricing import Pricing
from tilewright.energy.technology_text import technologies
from tilewright.tools.markdown import change, digits
from tilewright.tools.templates import render

__all__ = ["energy_page"]

_PICO_PER_MICRO = 1e6
_MICROWATT_PER_MILLIWATT = 1e3

_TEMPLATE = Path(__file__).with_name("energy_page.md.j2")


@dataclass(frozen=True, slots=True)
class _TechnologyTable:
    """A table of the page in one technology; empty without rows."""

    technology: Technology
    table: str


def energy_page(results: Results, baselines: Baselines) -> str:
    """Return the page; only runs with every optimisation are in its first tables."""
    machine = _machine(results)
    base = [(case, figures) for case, figures in best(results) if case.machine.name == machine]
    loaded = [Technology.load(name) for name in technologies()]
    return render(_TEMPLATE, machine=machine,
                  networks=[_TechnologyTable(each, _networks(each, best(results))) for each in loaded
                            if each.use != "ratios"],
                  components=[_TechnologyTable(each, _components(each.name, base)) for each in loaded
                              if each.use == "absolute"],
                  savings=_savings(base, baselines), choices=_choices(results), gating=_gating(base, baselines))


def _machine(results: Results) -> str:
    """Return the machine that tables of one machine are of."""
    names = list(dict.fromkeys(case.machine.name for case in results))
    return COMPARED if COMPARED in names or not names else names[0]


def _priced(figures: Figures, case: BenchCase, technology: str, *, gated: bool = False) -> EnergyEstimate:
    return energy_of(figures.work, case.machine, Pricing(technology=technology, gated=gated))


def _networks(technology: Technology, runs: Iterable[tuple[BenchCase, Figures]]) -> str:
    rows = []
    for case, figures in runs:
        total = _priced(figures, case, technology.name).total
        microseconds = figures.cycles / technology.clock_mhz
        rows.append([*place(case), digits(total.uj), *_ranges(total), digits(total.uj * _PICO_PER_MICRO / figures.macs),
                     digits(_MICROWATT_PER_MILLIWATT * total.uj / microseconds)])
    heads = (*PLACE, "energy, µJ", "relative", "absolute", "pJ per MAC", f"mW at {technology.clock_mhz:g} MHz")
    return run_table(heads, rows)


def _ranges(amount: Amount) -> list[str]:
    return [f"{digits(amount.relative_low_uj)} … {digits(amount.relative_high_uj)}",
            f"{digits(amount.absolute_low_uj)} … {digits(amount.absolute_high_uj)}"]


def _components(technology: str, runs: Sequence[tuple[BenchCase, Figures]]) -> str:
    energies = [(case, _priced(figures, case, technology)) for case, figures in runs]
    names = list(dict.fromkeys(name for _, energy in energies for name in energy.components))
    rows = [[*place(case), *(f"{100 * energy.by_component.get(name, 0.0) / energy.total_uj:.1f}" for name in names)]
            for case, energy in energies]
    heads = (*PLACE, *(name.replace("_", " ") for name in names))
    return run_table(heads, rows)


def _savings(runs: Iterable[tuple[BenchCase, Figures]], baselines: Baselines) -> str:
    paper = {name: row for row in ROWS for name in row.ours}
    rows = []
    for case, figures in runs:
        if not any(of_core(baselines[case.network], core) for core in TITLES):
            continue
        stated = f"{paper[case.network].energy_cut} %" if case.network in paper else ""
        rows.append([*place(case), stated,
                     *(_saving(figures, case, of_core(baselines[case.network], core), technology)
                       for core in TITLES for technology in technologies())])
    heads = (*PLACE, "paper", *(f"over {title.split(',')[0]}, {technology}" for title in TITLES.values()
                                for technology in technologies()))
    return run_table(heads, rows)


def _saving(figures: Figures, case: BenchCase, baseline: BaselineFigures | None, technology: str, *,
            gated: bool = False) -> str:
    if baseline is None:
        return "–"
    ours = _priced(figures, case, technology, gated=gated).total
    theirs = energy_of_baseline(baseline, Pricing(technology=technology, gated=gated)).total
    shares = [100 * (1 - share) for share in (
        ours.uj / theirs.uj, ours.relative_high_uj / theirs.relative_low_uj,
        ours.relative_low_uj / theirs.relative_high_uj)]
    return f"{'~' if baseline.in_parts else ''}{shares[0]:.1f} % ({shares[1]:.1f} … {shares[2]:.1f})"


def _choices(results: Results) -> str:
    rows = []
    for what, options in (("conv23", NO_WINOGRAD), ("fused", UNFUSED), ("reuse", NO_REUSE)):
        for case, full, without in pairs(results, options):
            energies = [(_priced(full, case, name).total_uj, _priced(without, case, name).total_uj)
                        for name in technologies()]
            rows.append([what, *place(case), change(full.cycles, without.cycles),
                         *(change(new, old) for new, old in energies)])
    heads = ("choice", *PLACE, "cycles", *(f"energy, {name}" for name in technologies()))
    return run_table(heads, rows, left=5)


def _gating(runs: Sequence[tuple[BenchCase, Figures]], baselines: Baselines) -> str:
    able = [name for name in technologies() if Technology.load(name).gating]
    rows = []
    for case, figures in runs if able else []:
        changes = [change(_priced(figures, case, name, gated=True).total_uj, _priced(figures, case, name).total_uj)
                   for name in able]
        saved = [_saving(figures, case, of_core(baselines[case.network], core), name, gated=True)
                 for core in TITLES for name in able]
        rows.append([*place(case), *changes, *saved])
    heads = (*PLACE, *(f"energy, {name}" for name in able),
             *(f"saved over {title.split(',')[0]}, {name}" for title in TITLES.values() for name in able))
    return run_table(heads, rows)
