"""Run a matrix of cases and write the page; saved results are not computed again."""

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tilewright.bench.baselines import BaselineFigures, baselines_of
from tilewright.bench.benchmarks_page import page
from tilewright.bench.cases import BASELINES, BenchCase
from tilewright.bench.energy_page import energy_page
from tilewright.bench.figure_store import FigureStore
from tilewright.bench.runs import Figures, matters, run_case
from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.options import BEST
from tilewright.tools.files import write_file
from tilewright.tools.page_origin import with_origin
from tilewright.tools.progress import Steps

__all__ = ["bench"]


def bench(cases: Iterable[BenchCase], output: Path, steps: Steps, *, store: FigureStore, rtl_cycles: float = math.inf,
          all_baselines: bool = False, command: str = "tilewright bench", energy: Path | None = None) -> bool:
    """Run ``cases``, write the page to ``output``, and return whether all ran and equal their references.

    A case without an optimisation that finds nothing to do in its network is left out. What the compiler refuses is
    named on the page, and the rest runs.

    Parameters
    ----------
    rtl_cycles
        Leave out what engine ``rtl`` would simulate longer than this, as far as ``fast`` has predicted it before.
    all_baselines
        Run the baselines of every network, not only of the main ones.
    command
        How all this was asked for.
    energy
        Where to write the page on energy, if anywhere.

    Raises
    ------
    InputError, SimulationError
        As the runs do; what has been run until then is kept.
    """
    results: dict[BenchCase, Figures] = {}
    refused: dict[str, str] = {}
    todo = list(cases)
    for index, case in enumerate(todo, start=1):
        what = f"{case.network} on {case.machine.name}"
        predicted = results.get(replace(case, engine="fast", options=BEST))
        if what in refused or (predicted is not None and (
                (case.engine == "rtl" and predicted.cycles > rtl_cycles)
                or (case.options != BEST and not matters(case.options, predicted)))):
            continue
        with steps.step(f"{index} of {len(todo)}: {case}"):
            try:
                results[case] = run_case(case, store, steps)
            except CompileError as error:
                refused[what] = str(error)
    baselines: dict[str, tuple[BaselineFigures, ...]] = {}
    for network in dict.fromkeys(case.network for case in results):
        if not all_baselines and network not in BASELINES:
            baselines[network] = ()
            continue
        with steps.step(f"Baselines of {network}"):
            baselines[network] = baselines_of(network, store, steps)
    if energy is not None:
        write_file(energy, with_origin(energy_page(results, baselines), command).encode())
    write_file(output, with_origin(page(results, baselines, refused=refused), command).encode())
    return (not refused and all(figures.matches for figures in results.values())
            and all(each.matches for found in baselines.values() for each in found))
