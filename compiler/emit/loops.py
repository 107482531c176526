"""Fold a flat list of commands into loops, and prove the fold by expanding it again.

A stretch of statements that repeats, with operands that step evenly or go round a ring, becomes a loop; then
stretches of such loops do. What repeats is found by *forms*: a statement without its constants. For each period
the longest stretch of equal forms is known from the back of the list; how far the constants follow::

    v[k] = v[0] + d * k                          evenly
    v[k] = b + d * ((k + phase) % modulus)       round a ring
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.program import Affine, Call, Issue, Loop, Statement, Term

__all__ = ["Sequence1D", "constants", "follow", "form", "height", "longest", "named", "roll"]

_PERIODS = (1, 4, 12, 48)
"""Statements in a loop's body, at most: short ones are looked for first, so that loops nest."""

_PLACEHOLDER = "v"
"""Loops are named v1 (innermost), v2 ... while folding, and i, j ... from outside in at the end."""

_NAMES = "ijklmnpq"


@dataclass(frozen=True, slots=True)
class Sequence1D:
    """Change of a constant from one iteration to the next."""

    constant: int
    step: int
    modulus: int = 0
    phase: int = 0

    def values(self, count: int) -> NDArray[np.int64]:
        """Return the first ``count`` values."""
        index = np.arange(count)
        return self.constant + self.step * ((index + self.phase) % self.modulus if self.modulus else index)

    def affine(self, variable: str) -> Affine:
        """Return it as an operand."""
        if self.step == 0:
            return Affine(self.constant)
        return Affine(self.constant, (Term(variable, self.step, self.modulus, self.phase),))


def roll(body: Sequence[Issue | Call]) -> tuple[Statement, ...]:
    """Return ``body`` with loops.

    Raises
    ------
    AssertionError
        If what was folded would not expand to ``body``: a mistake of this module.
    """
    statements: list[Statement] = list(body)
    for most in _PERIODS:
        before = 0
        while before != len(statements):
            before, statements = len(statements), _fold(statements, most)
    rolled = tuple(named(each, {}) for each in statements)
    assert list(_expand(rolled, {})) == list(_expand(body, {})), "rolled loops must expand to the program"
    return rolled


def _expand(body: Iterable[Statement], variables: Mapping[str, int]) -> Iterator[object]:
    """Yield the commands of ``body`` in order: their names and the values of their operands."""
    for statement in body:
        if isinstance(statement, Issue):
            yield statement.mnemonic, statement.variant, statement.flags, statement.values(variables)
        elif isinstance(statement, Call):
            yield statement
        else:
            for index in range(statement.count):
                yield from _expand(statement.body, {**variables, statement.variable: index})


# ---- one pass


def _fold(statements: list[Statement], most: int) -> list[Statement]:
    """Return ``statements`` with repeated stretches of at most ``most`` as loops, one level deep."""
    forms: dict[Hashable, int] = {}
    ids = np.array([forms.setdefault(form(each), len(forms)) for each in statements])
    values = _ConstantTable(statements)
    repeats = {period: _equal_ahead(ids, period).tolist() for period in range(1, min(most, len(ids) // 2) + 1)}
    result: list[Statement] = []
    place = 0
    while place < len(statements):
        count, period, sequences = longest(place, repeats, values)
        if count > 1:
            variable = f"{_PLACEHOLDER}{1 + max(map(height, statements[place:place + period]))}"
            body = tuple(_with_constants(each, iter([s.affine(variable) for s in row]))
                         for each, row in zip(statements[place:place + period], sequences, strict=True))
            result.append(Loop(variable, count, body))
            place += count * period
        else:
            result.append(statements[place])
            place += 1
    return result


def _equal_ahead(ids: NDArray[np.int64], period: int) -> NDArray[np.int64]:
    """Return for each place how many statements in a row equal in form those ``period`` further on."""
    same = ids[:-period] == ids[period:]
    # Distance to the next place where they differ.
    breaks = np.where(same, len(same), np.arange(len(same)))
    following = np.minimum.accumulate(breaks[::-1])[::-1]
    return np.concatenate([following - np.arange(len(same)), np.zeros(period, np.int64)])


def longest(place: int, repeats: Mapping[int, Sequence[int]],
            values: "_ConstantTable") -> tuple[int, int, list[list[Sequence1D]]]:
    """Return (iterations, period, sequences of the body's constants) of the loop at ``place`` that saves most."""
    best: tuple[int, int, list[list[Sequence1D]]] = (1, 1, [])
    for period, ahead in repeats.items():
        saved = (best[0] - 1) * best[1]
        count = ahead[place] // period + 1
        if count < 2 or (count - 1) * period <= saved:
            continue
        table = values.table(place, period, count)
        evenly = table[0] + (table[1] - table[0]) * np.arange(count)[:, np.newaxis]
        wrong = evenly != table
        others = np.flatnonzero(wrong.any(axis=0)).tolist()
        reaches = dict(zip(others, wrong[:, others].argmax(axis=0).tolist(), strict=True))
        bounds = values.bounds(place, period)
        for first, stop in pairwise(bounds):
            count = min([count, *(follow(table[:count, column])[1] for column in others
                                  if first <= column < stop and reaches[column] < count)])
            if (count - 1) * period <= saved:
                break
        # Few repetitions of little are clearer written out.
        if (count >= 3 or (count == 2 and period >= 6)) and (count - 1) * period > saved:
            steps = zip(table[0].tolist(), (table[1] - table[0]).tolist(), strict=True)
            row = [follow(table[:count, column])[0] if reaches.get(column, count) < count else Sequence1D(start, step)
                   for column, (start, step) in enumerate(steps)]
            best = count, period, [row[first:stop] for first, stop in pairwise(bounds)]
    return best


class _ConstantTable:
    """Constants of all statements in a row. Those of stretches that are equal in form are rows of a table."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        values, self._starts = list[int](), [0]
        for each in statements:
            values.extend(constants(each))
            self._starts.append(len(values))
        self._values = np.array(values, np.int64)

    def table(self, place: int, period: int, count: int) -> NDArray[np.int64]:
        """Return int64 (count, constants): those of ``count`` stretches of ``period`` statements from ``place`` on."""
        return self._values[self._starts[place]:self._starts[place + count * period]].reshape(count, -1)

    def bounds(self, place: int, period: int) -> list[int]:
        """Return the columns of that table at which each statement begins, and their number."""
        return [start - self._starts[place] for start in self._starts[place:place + period + 1]]


def follow(values: NDArray[np.int64]) -> tuple[Sequence1D, int]:
    """Return the sequence that agrees with the most of ``values`` from the first on, and with how many."""
    found = [Sequence1D(int(values[0]), int(values[1] - values[0]) if len(values) > 1 else 0)]
    reach = [_agreement(found[0], values)]
    if reach[0] < len(values):
        # values[reach] is the first of the next lap, or values[1] is and values[0] was the last of its own.
        for step, base in ((values[1] - values[0], values[reach[0]]), (values[2] - values[1], values[1])):
            lap = _ring(int(values[0]), int(step), int(base), int(values[reach[0] - 1]))
            if lap is not None:
                found.append(lap)
                reach.append(_agreement(lap, values))
    best = max(range(len(found)), key=lambda each: reach[each])
    return found[best], reach[best]


def _ring(first: int, step: int, base: int, last: int) -> Sequence1D | None:
    """Return the ring from ``base`` in steps of ``step`` that begins at ``first`` and whose lap ends at ``last``."""
    if step == 0 or (first - base) % step or (last - base) % step:
        return None
    modulus, phase = max(first - base, last - base) // step + 1 if step > 0 else 0, (first - base) // step
    return Sequence1D(base, step, modulus, phase) if modulus > 1 and 0 <= phase < modulus else None


def _agreement(sequence: Sequence1D, values: NDArray[np.int64]) -> int:
    """Return how many of ``values`` from the first on are those of ``sequence``."""
    wrong = np.flatnonzero(sequence.values(len(values)) != values)
    return int(wrong[0]) if len(wrong) else len(values)


# ---- statements and their constants


def form(statement: Statement) -> Hashable:
    """Return the parts that must be equal for two statements to be iterations of one loop."""
    if isinstance(statement, Loop):
        return statement.variable, statement.count, tuple(map(form, statement.body))
    if isinstance(statement, Call):
        return id(statement)        # no loop has calls: each has a function of its own
    return (statement.mnemonic, statement.variant, statement.flags,
            tuple((name, operand.terms) for name, operand in statement.operands.items()))


def constants(statement: Statement) -> Iterator[int]:
    """Yield the constants of a statement, in the order of its operands."""
    if isinstance(statement, Loop):
        for each in statement.body:
            yield from constants(each)
    elif isinstance(statement, Issue):
        yield from (operand.constant for operand in statement.operands.values())


def _with_constants(statement: Statement, affines: Iterator[Affine]) -> Statement:
    """Return ``statement`` with its constants replaced by ``affines``, in the same order."""
    if isinstance(statement, Loop):
        body = tuple(_with_constants(each, affines) for each in statement.body)
        return Loop(statement.variable, statement.count, body)
    if isinstance(statement, Call):
        return statement
    operands = {}
    for name, operand in statement.operands.items():
        affine = next(affines)
        operands[name] = Affine(affine.constant, affine.terms + operand.terms)
    return Issue(statement.mnemonic, statement.variant, statement.flags, operands)


def height(statement: Statement) -> int:
    """Return how many loops lie inside one another, 0 for a command."""
    return int(statement.variable.removeprefix(_PLACEHOLDER)) if isinstance(statement, Loop) else 0


def named(statement: Statement, names: Mapping[str, str]) -> Statement:
    """Return ``statement`` with the loops' variables named from outside in."""
    if isinstance(statement, Loop):
        inside = {**names, statement.variable: _NAMES[len(names)]}
        return Loop(inside[statement.variable], statement.count, tuple(named(each, inside) for each in statement.body))
    if isinstance(statement, Call):
        return statement
    operands = {name: Affine(operand.constant, tuple(
        Term(names[term.variable], term.coefficient, term.modulus, term.phase) for term in operand.terms))
        for name, operand in statement.operands.items()}
    return Issue(statement.mnemonic, statement.variant, statement.flags, operands)
