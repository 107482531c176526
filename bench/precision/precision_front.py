"""The front of accuracy, cycles, energy, bytes of weights and area over bits of layers and machines."""

import multiprocessing
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from tilewright.bench.exploration.area_prediction import AreaTarget
from tilewright.bench.exploration.design_limits import Limit
from tilewright.bench.exploration.space import Space
from tilewright.bench.precision.bits_choice import BitsChoice
from tilewright.bench.precision.bits_cost import MEASURES, BitsCost, BitsPoint
from tilewright.bench.precision.bits_judge import BitsError, BitsJudge
from tilewright.bench.precision.bits_search import joint_choices, single_choices, undominated
from tilewright.errors import InputError
from tilewright.runtime.design.design import Design
from tilewright.runtime.precision.quantised_file import LayerRow
from tilewright.tools.progress import Steps

__all__ = ["PrecisionFront", "designs_of", "precision_front"]

_MOST_COSTED = 48
"""Choices, at most, that are compiled for every machine."""

_Task = TypeVar("_Task")
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class PrecisionFront:
    """Choices that were judged, and the front of those that nothing beats.

    Attributes
    ----------
    layers : sequence of LayerRow
        With 8 bits.
    errors : mapping of BitsChoice to BitsError
        Of every choice that was judged, those of single layers first.
    points : sequence of BitsPoint
        All that were compiled; by cycles.
    """

    layers: Sequence[LayerRow]
    errors: Mapping[BitsChoice, BitsError]
    points: Sequence[BitsPoint]

    def front(self, limits: Sequence[Limit] = ()) -> list[BitsPoint]:
        """Return the points within limits that no other of them beats, by cycles."""
        within = [point for point in self.points if not any(limit.violation(point.measures) > 0 for limit in limits)]
        return undominated(within, lambda point: [point.measures[name] for name in MEASURES])

    def sensitivity(self) -> list[dict[str, Any]]:
        """Return by layer what its weights of 4 and 2 bits, and 16 bits of its input, alone make of the error."""
        eight = BitsChoice.eight(len(self.layers))
        found = []
        for place, layer in enumerate(self.layers):
            row: dict[str, Any] = {"layer": layer.name, "weights": layer.weights}
            for text, choice in (("int4", eight.but(place, weights=4)), ("int2", eight.but(place, weights=2)),
                                 ("int16", eight.but(place, activations=16))):
                each = self.errors.get(choice)
                row[text] = None if each is None else {"error": each.error, "distance": each.distance}
            found.append(row)
        return found


def designs_of(space: Space, most: int, seed: int) -> tuple[Design, ...]:
    """Return the machine that a space starts from, and at most ``most`` others of it, drawn by ``seed``.

    Raises
    ------
    InputError
        If no choice of the space is a machine.
    """
    found: dict[str, Design] = {}
    chance = random.Random(seed)
    for _ in range(20 * most):
        if len(found) == most:
            break
        choice = {name: chance.choice(values) for name, values in space.axes.items()}
        try:
            found[space.key(choice)] = space.design(choice, f"{space.name}-{len(found):04d}")
        except ValueError:
            continue
    if most and not found:
        raise InputError(f"Space {space.name!r} must hold a machine, and none was found in {20 * most} choices")
    return (space.base, *found.values())


def precision_front(judge: BitsJudge, designs: Sequence[Design], target: str, folder: Path, *, outputs_only: bool,
                    jobs: int, steps: Steps) -> PrecisionFront:
    """Return the front of a network: single layers first, then choices of several, then the cost of the best.

    Parameters
    ----------
    judge : BitsJudge
    designs : sequence of Design
        Machines, each of which is also tried with the units that a choice needs.
    target : str
        As `AreaTarget` takes it.
    folder : Path
        Where models are written.
    outputs_only : bool
    jobs : int
        Processes.
    steps : Steps
    """
    model = judge.model
    rows = model.rows(BitsChoice.eight(len(model.layers)).bits(model.layers))
    first = single_choices(len(rows), model.wide)
    with _workers(jobs, judge) as pool:
        errors = dict(_judged(pool, first, "Judging layers one at a time", steps))
        later = joint_choices(errors, [row.weights for row in rows]) if len(first) < 3**len(rows) else []
        errors |= dict(_judged(pool, later, "Judging layers together", steps))
        chosen = _worth_compiling(errors, rows)
        cost = BitsCost(model, tuple(designs), AreaTarget(target), outputs_only, folder)
        tasks = [(cost, choice, errors[choice], f"bits-{number:02d}") for number, choice in enumerate(chosen)]
        with steps.count("Compiling the best", len(tasks)) as advance:
            points = [point for each in _in_turn(pool, _cost, tasks, advance) for point in each]
    points.sort(key=lambda point: (point.measures["cycles"], point.measures["error"]))
    return PrecisionFront(rows, errors, points)


def _worth_compiling(errors: Mapping[BitsChoice, BitsError], rows: Sequence[LayerRow]) -> list[BitsChoice]:
    """Return the choices that none beats in error, bits of weights and bits that are read twice; not too many."""
    sizes = np.array([row.weights for row in rows])

    def measures(choice: BitsChoice) -> tuple[float, ...]:
        return (errors[choice].error, float(sizes @ np.array(choice.weights)),
                float(sum(choice.activations)))

    order = sorted(errors, key=lambda choice: (errors[choice], measures(choice)))
    found = undominated(order, measures)
    eight = BitsChoice.eight(len(rows))
    if len(found) > _MOST_COSTED:
        places = np.unique(np.linspace(0, len(found) - 1, _MOST_COSTED).round().astype(int))
        found = [found[place] for place in places]
    return list(dict.fromkeys([eight, *found]))


def _judged(pool: Executor, choices: Sequence[BitsChoice], text: str, steps: Steps,
            ) -> Iterator[tuple[BitsChoice, BitsError]]:
    with steps.count(text, len(choices)) as advance:
        yield from zip(choices, _in_turn(pool, _judge, choices, advance), strict=True)


def _in_turn(pool: Executor, work: Callable[[_Task], _Found], tasks: Iterable[_Task], advance: Callable[[], None],
             ) -> Iterator[_Found]:
    for found in pool.map(work, tasks):
        advance()
        yield found


@contextmanager
def _workers(jobs: int, judge: BitsJudge) -> Iterator[Executor]:
    pool: Executor = ThreadPoolExecutor(1, initializer=_start, initargs=(judge,)) if jobs == 1 else \
        ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _start, (judge,))   # this one has threads
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


_here: list[BitsJudge] = []
"""Of a worker's process."""


def _start(judge: BitsJudge) -> None:
    _here[:] = [judge]


def _judge(choice: BitsChoice) -> BitsError:
    return _here[-1].judge(choice)


def _cost(task: tuple[BitsCost, BitsChoice, BitsError, str]) -> list[BitsPoint]:
    cost, choice, error, name = task
    return cost.cost(choice, error, name)
