"""Small .tflite files of comparisons, logic, choices and branches, for `tests.support.tflite_cases`."""

import numpy as np

from tests.support.tflite_files import TfliteFile

__all__ = ["CHOICES"]

_SHAPE = (1, 6, 5, 4)
Filled = tuple[list[int], list[int]]


def _compared(kind: str, scales: tuple[float, float], shapes: tuple[tuple[int, ...], ...] = (_SHAPE, _SHAPE)):
    def fill(file: TfliteFile, rng: np.random.Generator) -> Filled:
        a, b = (file.tensor(shape, scale, int(rng.integers(-9, 9)))
                for shape, scale in zip(shapes, scales, strict=True))
        y = file.tensor(np.broadcast_shapes(*shapes), dtype="bool")
        file.operator(kind, [a, b], [y])
        return [a, b], [y]
    return fill


def _chosen(file: TfliteFile, rng: np.random.Generator) -> Filled:
    """Return the larger of two tensors where a third is neither small nor large, by truths and their opposites."""
    numbers = 0.05, int(rng.integers(-9, 9))
    a, b, c = (file.tensor(_SHAPE, *numbers) for _ in range(3))
    low, high = (file.constant(np.array([level], np.int8), numbers[0], zero=numbers[1]) for level in (-40, 60))
    less, more, larger, inner, both, none = (file.tensor(_SHAPE, dtype="bool") for _ in range(6))
    y = file.tensor(_SHAPE, *numbers)
    file.operator("LESS", [c, low], [less])
    file.operator("GREATER_EQUAL", [c, high], [more])
    file.operator("LOGICAL_OR", [less, more], [none])
    file.operator("LOGICAL_NOT", [none], [inner])
    file.operator("GREATER", [a, b], [larger])
    file.operator("LOGICAL_AND", [larger, inner], [both])
    file.operator("SELECT_V2", [both, a, b], [y])
    return [a, b, c], [y]


def _branched(file: TfliteFile, rng: np.random.Generator) -> Filled:
    """Return one of two convolutions, by whether the first of two numbers is above the other."""
    x, numbers = file.tensor(_SHAPE, 0.04, 3), file.tensor((1, 2), 0.1, 0)
    ends = [file.constant(np.array([0, each], np.int32)) for each in (0, 1)]
    size = file.constant(np.array([1, 1], np.int32))
    first, second = (file.tensor((1, 1), 0.1, 0) for _ in range(2))
    above, y = file.tensor((1, 1), dtype="bool"), file.tensor((1, 6, 5, 3), 0.07, -4)
    condition, shape = file.tensor((), dtype="bool"), file.constant(np.zeros(0, np.int32))
    for begin, part in zip(ends, (first, second), strict=True):
        file.operator("SLICE", [numbers, begin, size], [part])
    file.operator("GREATER", [first, second], [above])
    file.operator("RESHAPE", [above, shape], [condition])
    file.operator("IF", [condition, x], [y], ThenSubgraphIndex=1, ElseSubgraphIndex=2)
    for _ in range(2):
        file.next_graph()
        given = file.tensor(_SHAPE, 0.04, 3)
        scales = rng.uniform(0.002, 0.02, 3).astype(np.float32)
        weights = file.constant(rng.integers(-127, 128, (3, 1, 1, 4)).astype(np.int8), scales)
        bias = file.constant(rng.integers(-900, 900, 3).astype(np.int32), scales * np.float32(0.04))
        made = file.tensor((1, 6, 5, 3), 0.07, -4)
        file.operator("CONV_2D", [given, weights, bias], [made], Padding=1, StrideW=1, StrideH=1, DilationWFactor=1,
                      DilationHFactor=1)
        file.border([given], [made])
    return [x, numbers], [y]


def _beside(kind: str, level: int, *, flipped: bool = False):
    """Return a comparison with one constant, whose truths choose between the tensor and another level of it."""
    def fill(file: TfliteFile, rng: np.random.Generator) -> Filled:
        x, y = (file.tensor(_SHAPE, 0.003, 5) for _ in range(2))
        bound, other = (file.constant(np.array(each, np.int8), 0.003, zero=5) for each in (level, -7))
        truths = file.tensor(_SHAPE, dtype="bool")
        file.operator(kind, [bound, x] if flipped else [x, bound], [truths])
        file.operator("SELECT_V2", [truths, x, other], [y])
        return [x], [y]
    return fill


CHOICES = {
    "equal": _compared("EQUAL", (0.05, 0.05)), "equal near one another": _compared("EQUAL", (0.003, 0.003)),
    "not equal": _compared("NOT_EQUAL", (0.02, 0.04)), "greater": _compared("GREATER", (0.02, 0.03)),
    "less by channel": _compared("LESS", (0.02, 0.03), (_SHAPE, (4,))),
    "less or equal of rows": _compared("LESS_EQUAL", (0.02, 0.03), ((1, 12), (1, 12))),
    "greater than a level": _beside("GREATER", 11), "level less": _beside("LESS", 40, flipped=True),
    "equal to a level": _beside("EQUAL", -30), "unequal to a level": _beside("NOT_EQUAL", 77),
    "less than the least": _beside("LESS", -128), "at least the least": _beside("GREATER_EQUAL", -128),
    "chosen": _chosen, "branched": _branched,
}
"""By name."""
