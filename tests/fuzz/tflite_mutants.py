"""Damaged .tflite files, many of them: ``python -m tests.fuzz.tflite_mutants --mutants 5000 --seed 0``.

Each mutant of MLPerf's four files, or of a small file of one operator, is compiled, or checked, in a process with a
limit of time and of memory (`tests.fuzz.mutate`). Bytes are damaged anywhere, or numbers where the tables of the file
lie: behind its weights, or in place of one that is an offset, a length, a shape, a type or an index. What may come of
it is success or one of the project's own errors. Exit status 1 if anything else did.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from tests.fuzz import mutate
from tests.fuzz.mutations import NUMBERS, damaged_bytes
from tests.support.tflite_cases import CASES, content_of
from tilewright.models import FOLDER, PUBLISHED

__all__ = ["WORKER", "run_mutant", "tflite_mutant"]

WORKER = "tests.fuzz.tflite_mutants"

_SMALL = 1 << 12
"""An offset, a length or a shape is mostly less than this, and weights are rarely so in all four bytes."""


@cache
def _whole(index: int) -> bytes:
    """Return a valid file: MLPerf's, then those of single operators."""
    if index < len(PUBLISHED):
        return (FOLDER / f"{list(PUBLISHED)[index]}.tflite").read_bytes()
    return content_of(list(CASES)[(index - len(PUBLISHED)) % len(CASES)])


def tflite_mutant(seed: int, number: int) -> bytes:
    """Return mutant ``number``: four of five of the published networks, in turn."""
    rng = np.random.default_rng((seed, number))
    count = len(PUBLISHED)
    data = _whole(number % count if number % 5 else count + int(rng.integers(len(CASES))))
    if rng.random() < 0.3:
        return damaged_bytes(data, _whole(int(rng.integers(count))), rng)
    words = np.frombuffer(data[:len(data) // 4 * 4], np.uint32).copy()
    small = np.flatnonzero(words < _SMALL)
    for _ in range(int(rng.integers(1, 4))):
        place = int(rng.choice(small))
        value = int(rng.choice(NUMBERS)) if rng.random() < 0.5 else int(words[place]) + int(rng.integers(-8, 9))
        words[place] = value % (1 << 32)
    return words.tobytes() + data[len(data) // 4 * 4:]


def run_mutant(seed: int, number: int, folder: Path) -> str:
    """Make mutant ``number`` and try it."""
    return f"tflite: {mutate.try_model(tflite_mutant(seed, number), folder, number)}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog=f"python -m {WORKER}", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    outcomes: Counter[str] = Counter()
    findings = 0
    numbers = range(given.first, given.first + given.mutants)
    for number, outcome, wrong in mutate.mutants(given.seed, numbers, given.jobs, WORKER):
        outcomes[outcome] += 1
        if wrong:
            findings += 1
            print(f"mutant {number}: {wrong}", flush=True)
    for outcome, count in sorted(outcomes.items()):
        print(f"  {count:7,} {outcome}")
    print(f"{findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
