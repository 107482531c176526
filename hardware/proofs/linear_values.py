"""The matrices of Winograd's transforms as sums of inputs, read off `isa.numerics`, for linear_transform.sv.j2."""

from collections.abc import Callable, Mapping, Sequence

from tilewright.isa.numerics import Matrix, inverse_transform, transform_input, transform_weight

__all__ = ["input_values", "inverse_values", "weight_values"]

_Transform = Callable[[Sequence[Sequence[int]]], Matrix]


def input_values() -> Mapping[str, object]:
    """Return the values of the template for `InputTransform` with one bit of metadata."""
    x = _terms("x", 16, 8)
    expected = _terms_of("v", "x", transform_input, 4)
    passes = [(f"given[128] & {'' if dot else '!'}given[129]", _part(k, 10), f"{'x' if dot else 'v'}{k}")
              for dot in (False, True) for k in range(16)]
    return {"input_bits": 131, "output_bits": 161, "latency": 1, "terms": [*x, *expected],
            "equalities": [*passes, ("1", "out[160]", "given[130]")],
            "covers": ["given[128] & !given[129] & v0 == 510", "given[128] & given[129] & x5 == -128"]}


def weight_values() -> Mapping[str, object]:
    """Return the values of the template for `WeightTransform`."""
    x = _terms("x", 16, 8)
    expected = _terms_of("u", "x", transform_weight, 3)
    passes = [(f"{'' if dot else '!'}given[128]", _part(k, 12), f"{'x' if dot else 'u'}{k}")
              for dot in (False, True) for k in range(16)]
    return {"input_bits": 129, "output_bits": 192, "latency": 2, "terms": [*x, *expected], "equalities": passes,
            "covers": ["!given[128] & u5 == -1152", "given[128] & x15 == 127"]}


def inverse_values() -> Mapping[str, object]:
    """Return the values of the template for `InverseTransform`.

    Its four sums are compared where they are multiples of four of 22 bits, as those of all int8 tiles are; those of a
    run where the products are of two int8 numbers.
    """
    x = _terms("x", 16, 21)
    expected = _terms_of("y", "x", lambda unit: inverse_transform([[4 * value for value in row] for row in unit]), 4)
    fits = [(f"!given[336] & y{k} >= -2097152 & y{k} <= 2097151 & y{k}[1:0] == 0", _part(k, 20), f"(y{k} >>> 2)")
            for k in range(4)]
    small = " & ".join(f"x{k} >= -16384 & x{k} <= 16384" for k in range(16))
    out = [("o" + str(k), _part(k, 20)) for k in range(4)]
    total = ("total", " + ".join(f"x{k}" for k in range(16)))
    return {"input_bits": 337, "output_bits": 80, "latency": 2, "terms": [*x, *expected, *out, total],
            "equalities": [*fits, (f"given[336] & {small}", "o0 - o1 - o2 + o3", "total")],
            "covers": ["!given[336] & y0 == 589824", f"given[336] & {small} & total == 262144"]}


def _terms(name: str, count: int, width: int) -> list[tuple[str, str]]:
    """Return names and values of the signed numbers that go in."""
    return [(f"{name}{k}", f"$signed(given[{width * k} +: {width}])") for k in range(count)]


def _terms_of(name: str, source: str, transform: _Transform, side: int) -> list[tuple[str, str]]:
    """Return names and values of what a linear ``transform`` makes, by what it makes of each unit matrix."""
    columns = []
    for place in range(side * side):
        unit = [[int(side * y + x == place) for x in range(side)] for y in range(side)]
        columns.append([value for row in transform(unit) for value in row])
    return [(f"{name}{k}", " + ".join(f"({column[k]}) * {source}{place}" for place, column in enumerate(columns)
                                      if column[k])) for k in range(len(columns[0]))]


def _part(index: int, width: int) -> str:
    return f"$signed(out[{width * index} +: {width}])"
