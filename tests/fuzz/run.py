"""Random CNN graphs, many of them: ``python -m tests.fuzz.run --graphs 5000 --engine fast --jobs 2 --seed 0``.

Graph number n of a seed is always the same. Exit status 1 if any differed; each that did is made smaller and saved in
tests/fuzz/corpus, whose entries are tests.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tests.fuzz.choices import Choices, Source, shrink
from tests.fuzz.fuzz_graph import FuzzGraph
from tests.fuzz.graphs import FOCUSES, focused_graph, random_graph
from tests.fuzz.lines import line_graph
from tests.fuzz.oracle import Verdict, judge
from tests.fuzz.quantised import QuantiserError, through_quantiser
from tilewright.isa.machine import preset

CORPUS = Path(__file__).parent / "corpus"

FORMS = ("qdq", "qdq", "qoperator", "qdq", "qoperator", "float", "qdq", "qoperator", "qdq", "qdq", "static", "qdq",
         "lines qdq", "lines qoperator", "apart qdq", "bytes static", "wide qdq", "mixed qdq", "apart static",
         "branches qdq", "matrices qdq", "matrices qoperator", "matrices static")
"""Of graph number n, by n modulo their count.

``static``: a float graph through onnxruntime.quantization; ``lines``: over one dimension, or over rows; the first words
of the last ones are those of `tests.fuzz.graphs.FOCUSES`.
"""

MACHINES = ("base", "base", "nano", "base", "large", "base", "base")
_PRIME = 1_000_003


def form_of(number: int, wanted: str = "") -> str:
    """Return the form of graph ``number``: that of all, if one is ``wanted``."""
    return wanted or FORMS[number % len(FORMS)]


def graph_of(source: Source, form: str) -> FuzzGraph:
    """Return the graph of `tests.fuzz.choices.Choices`'s ``source``; its form may be ``static``."""
    return _drawn(Choices(source), form)


def _drawn(choices: Choices, form: str) -> FuzzGraph:
    focus, _, inner = form.partition(" ")
    if form == "static" or inner == "static":
        return through_quantiser(choices, "" if form == "static" else focus)
    if focus in FOCUSES:
        return focused_graph(choices, focus, inner)
    if form.startswith("lines"):
        return line_graph(choices, form.removeprefix("lines "))
    return random_graph(choices, form)


def run_one(seed: int, number: int, engine: str, wanted: str = "", *, save: bool = True) -> Verdict:
    """Judge graph ``number`` of ``seed``, perhaps in one ``wanted`` form; make one that differs smaller and save it."""
    source, form = seed * _PRIME + number, form_of(number, wanted)
    # One machine in RTL: every other one is another simulator.
    machine = preset("base" if engine == "rtl" else MACHINES[number % len(MACHINES)])
    try:
        graph = graph_of(source, form)
    except QuantiserError as error:
        return Verdict(graphs=1, rejected=Counter([str(error)]))
    start = time.monotonic()
    verdict, _ = judge(graph.model.SerializeToString(), seed=number, engine=engine, machine=machine)
    verdict.operators.update(graph.operators)
    verdict.seconds = time.monotonic() - start
    if verdict.mismatches:
        verdict.mismatches = [f"graph {number} ({form}, {machine.name}): {each}" for each in verdict.mismatches]
        if save:
            verdict.mismatches[-1] += f"; saved as {_save_smaller(source, form, number, engine, machine.name)}"
    return verdict


def _save_smaller(source: int, form: str, number: int, engine: str, machine: str) -> Path:
    def fails(taken: Sequence[int]) -> bool:
        try:
            model = graph_of(taken, form).model.SerializeToString()
        except (ValueError, IndexError, AssertionError):
            return False    # no graph at all
        return bool(judge(model, seed=number, engine=engine, machine=preset(machine))[0].mismatches)

    smaller = shrink(_choices_of(source, form), fails, tries=60 if engine == "rtl" else 400)
    model = graph_of(smaller, form).model.SerializeToString()
    _, inputs = judge(model, seed=number, engine=engine, machine=preset(machine))
    path = CORPUS / f"{form}-{machine}-{source}.onnx"
    path.write_bytes(model)
    np.savez_compressed(path.with_suffix(".npz"), **inputs)
    return path


def _choices_of(source: int, form: str) -> list[int]:
    choices = Choices(source)
    _drawn(choices, form)
    return choices.taken


def _task(task: tuple[int, int, str, str]) -> Verdict:
    return run_one(*task)


def verdicts(seed: int, graphs: Sequence[int], engine: str, jobs: int, wanted: str = "") -> Iterator[Verdict]:
    """Yield the verdict of each of the graphs, in order."""
    tasks = [(seed, number, engine, wanted) for number in graphs]
    if jobs == 1:
        yield from map(_task, tasks)
        return
    with multiprocessing.get_context("forkserver").Pool(jobs) as pool:
        yield from pool.imap(_task, tasks, chunksize=8 if engine == "fast" else 1)


def report(total: Verdict, engine: str, seconds: float) -> str:
    """Return what many graphs have shown, line by line."""
    compiled = total.graphs - sum(total.refused.values()) - sum(total.rejected.values())
    kinds = Counter(name.split(" ")[0] for name in total.layers.elements())
    lines = [
        (f"{total.graphs:,} graphs in {seconds:,.0f} s ({total.graphs / seconds:.1f} a second), {compiled:,} compiled "
         f"and run on engine {engine}, {sum(total.refused.values())} refused by the compiler, "
         f"{sum(total.rejected.values())} by ONNX Runtime"),
        f"{sum(total.operators.values()):,} operators of {len(total.operators)} kinds; layers: " + ", ".join(
            f"{count:,} {name}" for name, count in kinds.most_common()),
        f"{total.engine:,} elements equal between engine and integer reference but for the mismatches",
        (f"{total.exact:,} integers compared with ONNX Runtime bit for bit; {total.loose:,} that may be one level off, "
         f"{total.off:,} of them are; {total.floats:,} floats within 0.1 % of their range; "
         f"{total.hidden:,} elements that ONNX Runtime does not show"),
    ]
    reasons = Counter(_kind(text) for text in total.refused.elements())
    lines += [f"refused {count} times: {text}" for text, count in reasons.most_common(12)]
    lines += [f"MISMATCH {text}" for text in total.mismatches]
    lines.append(f"{len(total.mismatches)} mismatches")
    return "\n".join(lines)


def _kind(refusal: str) -> str:
    """Return a refusal without the names in it."""
    words = refusal.split("'")
    return "…".join(words[::2])[:160]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--only", type=int, metavar="N", help="graph number N of the seed, and no other")
    parser.add_argument("--form", choices=sorted(set(FORMS)), default="", help="all graphs in this form")
    parser.add_argument("--engine", choices=("fast", "rtl"), default="fast")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    graphs = range(given.graphs) if given.only is None else [given.only]
    total, start = Verdict(), time.monotonic()
    try:
        for number, verdict in enumerate(verdicts(given.seed, graphs, given.engine, given.jobs, given.form), 1):
            for text in verdict.mismatches:
                print(f"\r{text}", file=sys.stderr)
            total.add(verdict)
            if sys.stderr.isatty():
                print(f"\r{number} graphs, {len(total.mismatches)} mismatches", end="", file=sys.stderr)
    except KeyboardInterrupt:
        print("\rstopped; so far:", file=sys.stderr)
    print(report(total, given.engine, time.monotonic() - start))
    return 1 if total.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
