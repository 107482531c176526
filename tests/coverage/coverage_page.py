"""The page docs/coverage.md: what programs come across in RTL, ``python -m tests.coverage.coverage_page``.

Words, directed and random, that are issued in RTL are counted by our own monitor (functional points), lines and toggles
by Verilator in the same runs and in those of networks. Exit status 1 if fewer than 95 % of the functional points were
met, one that was not has no explanation, a word ended otherwise than it must, or a network's tensor is wrong.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from tests.coverage.directed import programs
from tests.coverage.lines import Counts, Covered
from tests.coverage.networks import EXAMPLES, run
from tests.coverage.points import CAUSES, Monitor, Point, points
from tests.coverage.untouched import untouched
from tests.fuzz.machine_code import MACHINE, Campaign, Expected, Word
from tilewright.isa.counters import FAULTS, STRAY_RESPONSE
from tilewright.isa.machine import Machine, preset
from tilewright.tools.files import write_file
from tilewright.tools.page_origin import with_origin
from tilewright.tools.templates import render

__all__ = ["HOLES", "Result", "explanation", "main", "measure"]

_LEAST = 0.95
WORDS = 1000
LARGER = preset("base")

HOLES = {
    FAULTS[STRAY_RESPONSE]: "the simulator's memory answers what was asked for alone; `bus_master` of "
                            "[proofs.md](proofs.md) proves that such a response is told",
}
"""Functional points that no run can meet, by what their detail says."""


@dataclass(slots=True)
class Result:
    """Points that runs met: words and networks on `MACHINE`, and networks alone on a larger machine."""

    counts: dict[Point, int] = field(default_factory=dict)
    total: Counts = field(default_factory=Counts)
    by_words: dict[str, Covered] = field(default_factory=dict)
    larger: Counts = field(default_factory=Counts)
    failures: list[str] = field(default_factory=list)
    words: int = 0

    def missing(self) -> list[Point]:
        """Return the functional points that were not met."""
        return sorted(points() - self.counts.keys())

    def parts(self) -> list[tuple[str, list[Covered]]]:
        """Return what was met of each part: by words, by words and networks, and by networks on the larger machine."""
        columns = self.by_words, self.total.by_part(), self.larger.by_part()
        names = sorted({name for column in columns for name in column})
        rows = [(name, [column.get(name, Covered()) for column in columns]) for name in names]
        return [*rows, ("all", [Covered.sum(column.values()) for column in columns])]


def measure(words: int, seed: int, folder: Path, *, lines: bool) -> Result:
    """Issue the directed programs and so many random words in RTL; count lines and toggles too if asked for."""
    monitor, result = Monitor(), Result()
    codes: Iterator[int | None] = iter(())
    name = ""

    def observe(word: Word, ended: Expected) -> None:
        monitor.observe(word, ended)
        code = next(codes, None)
        if code is not None and (ended.trapped or ended.code != code):
            result.failures.append(f"{name}: {word.word:#010x} ({word.rs1:#x}, {word.rs2:#x}) must end with code "
                                   f"{code}, not as {ended}")

    counted = folder / "coverage.dat" if lines else None
    campaign = Campaign(seed, folder, observe=observe, coverage=counted)
    for number in count():
        if campaign.words >= words:
            break
        campaign.run_one(number)
        _add(result.total, counted)
    for directed in programs():
        name, codes = directed.name, iter(directed.codes)
        campaign.issue(name, directed.words, bytes(0x8000), directed.provoked)
        _add(result.total, counted)
    result.counts, result.words = monitor.counts, campaign.words
    result.failures += campaign.failures
    result.by_words = result.total.by_part()
    return result


def measure_networks(machine: Machine, folder: Path, kept: Path, total: Counts) -> list[str]:
    """Run the networks on a machine, add lines and toggles to ``total``, and return what is wrong.

    Counts of a set of networks that was right are written to ``kept``, and read from there the next time.
    """
    counted, failures = folder / "coverage.dat", []
    for example in EXAMPLES:
        path = kept / f"{machine.name}-{example.name.replace(' ', '-')}.dat.gz"
        if not path.exists():
            one = Counts()
            wrong = list(chain.from_iterable(_counting(run(example, machine, folder, counted), one, counted)))
            if wrong:
                failures += wrong
                continue
            one.write(path)
        total.add(path)
    return failures


def _counting(runs: Iterator[list[str]], total: Counts, counted: Path) -> Iterator[list[str]]:
    for wrong in runs:
        _add(total, counted)
        yield wrong


def _add(total: Counts, counted: Path | None) -> None:
    if counted is not None:
        total.add(counted)
        counted.unlink()
        print(".", end="", file=sys.stderr, flush=True)


def explanation(point: Point) -> str | None:
    """Return why no run meets a point; None if nobody knows."""
    return HOLES.get(point.detail)


def _page(result: Result) -> str:
    everything, missing = points(), result.missing()
    kinds = [(kind, what, sum(each.kind == kind for each in everything),
              sum(each.kind == kind for each in everything) - sum(each.kind == kind for each in missing))
             for kind, what in CAUSES.items()]
    return render(Path(__file__).with_name("coverage_page.md.j2"), kinds=kinds, total=len(everything),
                  met=len(everything) - len(missing), missing=[(each, explanation(each)) for each in missing],
                  parts=result.parts(), words=result.words, examples=EXAMPLES,
                  untouched=untouched([result.total, result.larger]), machine=MACHINE, larger=LARGER)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=WORDS, help="random words besides the directed programs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-lines", action="store_true", help="functional points alone, in the ordinary simulator")
    parser.add_argument("--kept", type=Path, metavar="FOLDER", help="counts of networks, not run again")
    parser.add_argument("-o", "--output", type=Path, help="write the page")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        result = measure(options.words, options.seed, Path(folder), lines=not options.no_lines)
        if not options.no_lines:
            kept = options.kept or Path(folder)
            kept.mkdir(parents=True, exist_ok=True)
            for machine, total in ((MACHINE, result.total), (LARGER, result.larger)):
                result.failures += measure_networks(machine, Path(folder), kept, total)
    everything, missing = points(), result.missing()
    unexplained = [each for each in missing if explanation(each) is None]
    print(f"{len(everything) - len(missing)} of {len(everything)} functional points met by {result.words} words")
    print(*(f"not met: {each}: {explanation(each) or 'nobody knows why'}" for each in missing), sep="\n")
    for name, columns in result.parts():
        print(f"{name:28}", *(f"lines {each.lines_met:6} of {each.lines:6}   toggles {each.toggles_met:6} of "
                              f"{each.toggles:6}" for each in columns), sep="   ")
    print(*result.failures, sep="\n")
    if options.output:
        command = f"make coverage WORDS={options.words} SEED={options.seed}"
        write_file(options.output, with_origin(_page(result), command).encode())
    return int(bool(unexplained or result.failures) or len(missing) > (1 - _LEAST) * len(everything))


if __name__ == "__main__":
    sys.exit(main())
