"""Run a matrix of cases and write the page; what was done before is not done again."""

import math
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tilewright.compiler.options import BEST
from tilewright.runtime.bench.baselines import baselines_of
from tilewright.runtime.bench.cases import Case
from tilewright.runtime.bench.page import page
from tilewright.runtime.bench.runs import Figures, Store, matters, run_case
from tilewright.runtime.files import write_file
from tilewright.runtime.progress import Steps


def bench(cases: Iterable[Case], output: Path, steps: Steps, *, store: Store, rtl_cycles: float = math.inf) -> bool:
    """Run ``cases``, write the page to ``output``, and return whether every layer of all equals ONNX Runtime's.

    A case without an optimisation that finds nothing to do in its network is left out.

    Parameters
    ----------
    rtl_cycles
        Leave out what engine ``rtl`` would simulate longer than this, as far as ``fast`` has predicted it before.

    Raises
    ------
    CompileError, InputError, RunError
        As the runs do; what has been run until then is kept.
    """
    results: dict[Case, Figures] = {}
    todo = list(cases)
    for index, case in enumerate(todo, start=1):
        predicted = results.get(replace(case, engine="fast", options=BEST))
        if predicted is not None and ((case.engine == "rtl" and predicted.cycles > rtl_cycles) or (case.options != BEST
                                      and not matters(case.options, predicted))):
            continue
        with steps.step(f"{index} of {len(todo)}: {case}"):
            results[case] = run_case(case, store, steps)
    baselines = {network: baselines_of(network, store, steps)
                 for network in dict.fromkeys(case.network for case in todo)}
    write_file(output, page(results, baselines).encode())
    return all(figures.matches for figures in results.values())
