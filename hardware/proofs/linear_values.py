"""The matrices of Winograd's transforms as sums of inputs, derived from `isa.numerics`, for linear_transform.sv.j2."""

import math
from collections.abc import Callable, Mapping, Sequence

from tilewright.isa.numerics import Matrix, inverse_transform, transform_input, transform_weight

__all__ = ["input_values", "inverse_values", "weight_values"]

_Transform = Callable[[Sequence[Sequence[int]]], Matrix]


def input_values() -> Mapping[str, object]:
    """Return the values of the template for `InputTransform` with one bit of metadata."""
    x = _terms("x", 16, 8)
    expected = _terms_of("v", "x", transform_input, 4, range(4))
    passes = [(f"given[128] & {'' if dot else '!'}given[129]", _part(k, 10), f"{'x' if dot else 'v'}{k}")
              for dot in (False, True) for k in range(16)]
    return {"width": 11, "input_bits": 131, "output_bits": 161, "latency": 1, "terms": [*x, *expected],
            "equalities": [*passes, ("1", "out[160]", "given[130]")],
            "covers": ["given[128] & !given[129] & v0 == 510", "given[128] & given[129] & x5 == -128"]}


def weight_values() -> Mapping[str, object]:
    """Return the values of the template for `WeightTransform`."""
    x = _terms("x", 16, 8)
    expected = _terms_of("u", "x", transform_weight, 3, (0, 2, 1))
    passes = [(f"{'' if dot else '!'}given[128]", _part(k, 12), f"{'x' if dot else 'u'}{k}")
              for dot in (False, True) for k in range(16)]
    return {"width": 13, "input_bits": 129, "output_bits": 192, "latency": 2, "terms": [*x, *expected],
            "equalities": passes,
            "covers": ["!given[128] & u5 == -1152", "given[128] & x15 == 127"]}


def inverse_values() -> Mapping[str, object]:
    """Return the values of the template for `InverseTransform`.

    Its four sums are compared where they are multiples of four of 22 bits, as those of all int8 tiles are; those of a
    run where the products are of two int8 numbers.
    """
    x = _terms("x", 16, 21)
    expected = _terms_of("y", "x", lambda unit: inverse_transform([[4 * value for value in row] for row in unit]), 4,
                         range(4))
    fits = [(f"!given[336] & y{k} >= -2097152 & y{k} <= 2097151 & y{k}[1:0] == 0", _part(k, 20), f"(y{k} >>> 2)")
            for k in range(4)]
    small = " & ".join(f"x{k} >= -16384 & x{k} <= 16384" for k in range(16))
    down = [(f"d{x}", f"x{x} + x{4 + x} + x{8 + x}") for x in range(4)]
    parts = ("d0 + d1 + d2", "-d3", "-x12 - x13 - x14", "x15")     # each input once; y0 - y1 - y2 + y3 adds them
    signed = [(f"o{k}", part) for k, part in enumerate(parts)]
    sums = [(f"given[336] & {small}", _part(k, 20), f"o{k}") for k in range(4)]
    return {"width": 26, "input_bits": 337, "output_bits": 80, "latency": 2, "terms": [*x, *expected, *down, *signed],
            "equalities": [*fits, *sums],
            "covers": ["!given[336] & y0 == 589824", f"given[336] & {small} & o0 == 147456"]}


def _terms(name: str, count: int, width: int) -> list[tuple[str, str]]:
    """Return names and values of the signed numbers that go in."""
    return [(f"{name}{k}", f"$signed(given[{width * k} +: {width}])") for k in range(count)]


def _terms_of(name: str, source: str, transform: _Transform, side: int, order: Sequence[int]) -> list[tuple[str, str]]:
    """Return names and values of M x Mᵀ, which ``transform`` makes of x: first down the columns, then along the rows.

    ``order`` is that of the terms within a sum: like the gateware's, or the solver takes minutes.
    """
    matrix = _matrix(transform, side)
    down = [(f"{name}_{i}_{x}", _sum(row, [f"{source}{side * y + x}" for y in range(side)], order))
            for i, row in enumerate(matrix) for x in range(side)]
    along = [(f"{name}{len(matrix) * i + j}", _sum(row, [f"{name}_{i}_{x}" for x in range(side)], order))
             for i in range(len(matrix)) for j, row in enumerate(matrix)]
    return [*down, *along]


def _matrix(transform: _Transform, side: int) -> list[list[int]]:
    """Return the matrix M of ``transform``, M x Mᵀ, by what becomes of each unit matrix; -M would be the same."""
    made = {(y, x): transform([[int((y, x) == (row, column)) for column in range(side)] for row in range(side)])
            for y in range(side) for x in range(side)}
    rows = range(len(made[0, 0]))
    known, row = next((column, row) for column in range(side) for row in rows if made[column, column][row][row])
    entry = math.isqrt(made[known, known][row][row])
    matrix = [[made[column, known][each][row] // entry for column in range(side)] for each in rows]
    assert all(made[y, x][i][j] == matrix[i][y] * matrix[j][x] for y, x in made for i in rows for j in rows)
    return matrix


def _sum(factors: Sequence[int], names: Sequence[str], order: Sequence[int]) -> str:
    """Return the sum of ``names`` times ``factors``, which are 0 or powers of two with a sign, what is added first."""
    signed = [(factors[k], names[k]) for k in sorted(order, key=lambda k: factors[k] < 0) if factors[k]]
    text = ""
    for factor, name in signed:
        power = abs(factor).bit_length() - 1
        assert abs(factor) == 1 << power
        text += f" {'-' if factor < 0 else '+'} ({name} <<< {power})" if text or factor < 0 else f"({name} <<< {power})"
    return text


def _part(index: int, width: int) -> str:
    return f"$signed(out[{width * index} +: {width}])"
