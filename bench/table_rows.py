"""The tables of runs: common first columns, and energies with their range."""

from collections.abc import Mapping, Sequence

from tilewright.bench.baselines import BaselineFigures
from tilewright.bench.cases import SIDES, BenchCase
from tilewright.bench.runs import Figures
from tilewright.compiler.network.options import BEST
from tilewright.tools.markdown import digits, table

__all__ = ["PLACE", "Results", "best", "energy", "place", "run_table"]

Results = Mapping[BenchCase, Figures]

PLACE = ("network, input", "machine", "memory", "engine")


def place(case: BenchCase) -> list[str]:
    """Return the first cells of a row: network with its input, machine, memory, engine."""
    return [f"{case.network}, {SIDES[case.network]}", case.machine.name,
            case.timing.brief, case.engine]


def energy(figures: Figures | BaselineFigures) -> str:
    """Return an energy in microjoules and its absolute range."""
    low, total, high = figures.energy.low_uj, figures.energy.total_uj, figures.energy.high_uj
    return f"{digits(total)} ({digits(low)} … {digits(high)})"


def best(results: Results) -> list[tuple[BenchCase, Figures]]:
    """Return the runs with every optimisation; those in RTL where there are any of the network and machine."""
    simulated = {(case.network, case.machine, case.memory) for case in results
                 if case.engine == "rtl" and case.options == BEST}
    return [(case, figures) for case, figures in results.items() if case.options == BEST
            and (case.engine == "rtl" or (case.network, case.machine, case.memory) not in simulated)]


def run_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = len(PLACE)) -> str:
    """Return a table whose first ``left`` columns are text; nothing without rows."""
    return table(heads, rows, left=left) if rows else ""
