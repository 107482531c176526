"""Faults put into the source, one at a time, and whether the tests find them: ``python -m tests.mutants --count 40``.

A mutant is a single edit of a module of `AREAS`, or of the folders of ``--areas``, drawn at random: an operator, a
comparison, a whole number or a truth value becomes its neighbour. The tests run in a copy of the checkout: those of
``make quick``, or ``--tests``. What no test can find, an edit that changes nothing, counts as missed. ``make test``
does not run this.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, pairwise
from pathlib import Path

from tests.structure.source import ROOT
from tilewright.tools.markdown import table

__all__ = ["AREAS", "Mutant", "mutants_of", "quick_tests"]

AREAS = ("compiler", "sim", "rtl", "energy")
_SECONDS = 1200
"""A mutant that takes so long is found: it hangs, where the tests end in minutes."""

_NEIGHBOURS = {"+": "-", "-": "+", "*": "//", "//": "*", "%": "//", "<<": ">>", ">>": "<<", "&": "|", "|": "&",
               "^": "|", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "and": "or", "or": "and",
               "in": "not in", "not in": "in", "is": "is not", "is not": "is"}
_OPERATOR = re.compile(r"<<|>>|<=|>=|==|!=|//|not\s+in|is\s+not|\b(?:and|or|in|is)\b|[-+*%&|^<>]")


@dataclass(frozen=True, slots=True)
class Mutant:
    """An edit of a file: what stands at a line and what is put there, from ``start`` to ``end`` of the text."""

    path: str
    line: int
    before: str
    after: str
    start: int
    end: int

    def text(self, source: str) -> str:
        """Return the source with the edit."""
        return source[:self.start] + self.after + source[self.end:]

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: `{self.before}` → `{self.after}`"


def mutants_of(source: str, path: str) -> list[Mutant]:
    """Return every mutant of a file; texts, annotations and what an error says have none."""
    lines = [f"{line}\n" for line in source.split("\n")]
    starts = [0, *accumulate(map(len, lines))]
    found = []
    for node in _nodes(ast.parse(source)):
        for place in _edits(node):
            begin, end = (starts[line - 1] + len(lines[line - 1].encode()[:column].decode()) for line, column in place)
            made = (_constant if isinstance(node, ast.Constant) else _operator)(source[begin:end])
            if made is not None:
                offset, before, after = made
                begin += offset
                found.append(Mutant(path, source.count("\n", 0, begin) + 1, before, after, begin, begin + len(before)))
    return found


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that may be edited."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list") or isinstance(tree, ast.Raise | ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield child
                yield from _nodes(child)


def _edits(node: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where in a node an edit may stand: line and column in bytes of its first and last places."""
    operands: list[ast.expr] = []
    if isinstance(node, ast.BinOp):
        operands = [node.left, node.right]
    elif isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
    elif isinstance(node, ast.BoolOp):
        operands = node.values
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int):
        yield _start(node), _end(node)
    for left, right in pairwise(operands):
        yield _end(left), _start(right)


def _operator(text: str) -> tuple[int, str, str] | None:
    found = _OPERATOR.search(re.sub(r"#[^\n]*", lambda comment: " " * len(comment[0]), text))
    if found is None or (after := _NEIGHBOURS.get(" ".join(found[0].split()))) is None:
        return None
    return found.start(), found[0], after


def _constant(text: str) -> tuple[int, str, str]:
    swapped = {"True": "False", "False": "True"}
    return 0, text, swapped.get(text) or str(ast.literal_eval(text) + 1)


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def quick_tests() -> list[str]:
    """Return the tests of ``make quick``."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    return [f"tests/{name}" for name in re.search(r"^QUICK := (.*)$", text, re.MULTILINE)[1].split()]


def drawn(count: int, seed: int, areas: Sequence[str] = AREAS) -> list[Mutant]:
    """Return so many mutants, the areas in turn, a module by its size."""
    rng = random.Random(seed)
    found: list[Mutant] = []
    modules = {area: sorted((ROOT / area).rglob("*.py")) for area in areas}
    while len(found) < count:
        paths = modules[areas[len(found) % len(areas)]]
        (path,) = rng.choices(paths, weights=[each.stat().st_size for each in paths])
        made = mutants_of(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix())
        found += [rng.choice(made)] if made else []
    return found


class _Copy:
    """A copy of the checkout with a cache of its own, in which tests run."""

    def __init__(self, folder: Path, tests: Sequence[str], jobs: int) -> None:
        self.folder, self.tests, self.jobs = folder, tests, jobs
        listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True)
        for name in filter(None, listed.stdout.split("\0")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)

    def finds(self, mutant: Mutant) -> bool:
        """Tell whether a test fails with the mutant."""
        file = self.folder / mutant.path
        before = file.read_text(encoding="utf-8")
        file.write_text(mutant.text(before), encoding="utf-8")
        try:
            return not self.passes(mutant.path)
        finally:
            file.write_text(before, encoding="utf-8")

    def passes(self, path: str = "") -> bool:
        """Run the tests, those of the folder of ``path`` first; tell whether all pass in time."""
        near = sorted(self.tests, key=lambda each: not f"tests/{path}".startswith(each.split("::")[0]))
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1",
                       "TILEWRIGHT_CACHE": str(self.folder / "cache")}
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider",
                   *(["-n", str(self.jobs)] if self.jobs > 1 else []), *near]
        try:
            return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, timeout=_SECONDS,
                                  check=False).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def main() -> int:
    """Draw, run, print a line for each mutant and a table; return 1 if the tests fail without one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--areas", nargs="+", default=list(AREAS), metavar="FOLDER", help="folders to draw from")
    parser.add_argument("--tests", nargs="+", metavar="TEST", help="instead of those of make quick")
    parser.add_argument("--jobs", type=int, default=2, help="processes of pytest")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each mutant with its verdict")
    given = parser.parse_args()
    verdicts: list[tuple[Mutant, bool]] = []
    with tempfile.TemporaryDirectory(prefix="tilewright-mutants-") as folder:
        copy = _Copy(Path(folder), given.tests or quick_tests(), given.jobs)
        began = time.monotonic()
        if not copy.passes():
            print("The tests fail without a mutant.")
            return 1
        print(f"The tests take {time.monotonic() - began:.0f} s.", flush=True)
        for mutant in drawn(given.count, given.seed, given.areas):
            verdicts.append((mutant, copy.finds(mutant)))
            print(f"{'found ' if verdicts[-1][1] else 'MISSED'} {mutant}", flush=True)
            if given.json:
                given.json.write_text(json.dumps([{**asdict(each), "found": found} for each, found in verdicts]))
    rows = []
    for area in (*given.areas, ""):
        found = [verdict for mutant, verdict in verdicts if mutant.path.startswith(area)]
        rows.append([area or "all", str(len(found)), str(sum(found)), f"{100 * sum(found) / max(len(found), 1):.0f} %"])
    print(table(("area", "mutants", "found", "share"), rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
