"""The page docs/ablation.md: the rows of an ablation as Markdown tables, a table for each machine and network."""

from collections.abc import Iterator

from tilewright.bench.ablation.ablation import Ablation, AblationRow
from tilewright.tools.markdown import change, digits, table

__all__ = ["gains", "page", "resources"]

_INTRODUCTION = """\
# What each instruction and unit earns

Each row takes one unit out of the machine. The gateware then lacks it, the compiler uses another instruction or the
host core, and every tensor stays the same to the bit. A unit that a network does not need changes nothing.

Cycles are those of engine `cycles`, which equal those of `fast`. Energies are predicted with the toggles of typical
data. *Factor* is the cycles without the unit over those with it. Below 1 the machine is faster without the unit.
"""

_GAIN = """\
Areas are those of the machine with the unit and without it. *Gain per area* is the gain in speed over the growth in
area, both in per cent of the machine without the unit. Above 1 a unit is worth its area, at 0 the network does not
use it, and a missing figure means that the unit takes no area.
"""

_MEASURED = "Area is measured by Yosys, before place and route."

_GAINS = ("LUT", "area")
"""Resources that a gain is stated for: the others are buffers and multipliers, which few units touch."""


def page(found: Ablation, command: str, picture: str = "") -> str:
    """Return the page; ``picture`` is the name of its picture."""
    parts = [_INTRODUCTION, f"Written by `{command}`.\n"]
    parts.append(f"{_source(found)} {_GAIN}")
    if picture:
        parts.append(f"![Slowdown without each unit]({picture})\n")
    for model, machine in dict.fromkeys((row.model, row.machine) for row in found.rows):
        rows = [row for row in found.rows if (row.model, row.machine) == (model, machine)]
        having = rows[0].having
        parts.append(f"## {model} on {machine}\n\nWith all: {having.cycles:,} cycles, {having.bytes:,} bytes, "
                     f"{digits(having.energy_uj)} µJ.\n\n{_table(rows)}\n")
    return "\n".join(parts)


def _source(found: Ablation) -> str:
    """Return where the areas are from."""
    if not found.area_errors:
        return _MEASURED
    errors = ", ".join(f"{name} on {target} {100 * error:.1f} %" for target, each in found.area_errors.items()
                       for name, error in each.items())
    return (f"Area is predicted ([area-model.md](area-model.md)); the error of a synthesised machine that was held out "
            f"is, rms: {errors}. The other resources are counted. The difference that one unit makes is less certain "
            f"than the sum.")


def gains(rows: list[AblationRow]) -> list[tuple[str, str]]:
    """Return the targets and resources that a gain is stated for."""
    return [(target, resource) for target, resource in resources(rows) if resource in _GAINS]


def resources(rows: list[AblationRow]) -> list[tuple[str, str]]:
    """Return the targets and resources that were measured."""
    return [(target, resource) for target, found in rows[0].area_with.items() for resource in found]


def _table(rows: list[AblationRow]) -> str:
    measured = resources(rows)
    heads = ["unit", "instructions that go with it", "cycles without", "factor", "bytes", "energy",
             *(f"{resource}, {target}" for target, resource in measured),
             *(f"gain per {resource}, {target}" for target, resource in gains(rows))]
    return table(heads, (list(_cells(row, measured, gains(rows))) for row in rows), left=2)


def _cells(row: AblationRow, measured: list[tuple[str, str]], priced: list[tuple[str, str]]) -> Iterator[str]:
    yield row.unit
    yield ", ".join(f"`{name}`" for name in row.instructions) or "an operand's field"
    if row.without is None:
        yield from (f"does not compile: {row.reason}", "–", "–", "–")
    else:
        yield from (f"{row.without.cycles:,}", f"{row.speedup:.3f}", change(row.without.bytes, row.having.bytes),
                    change(row.without.energy_uj, row.having.energy_uj))
    for target, resource in measured:
        having, without = row.area_with[target][resource], row.area_without[target][resource]
        yield f"{digits(having)} / {digits(without)}"
    for target, resource in priced:
        gain = row.gain_per_area(target, resource)
        yield "–" if gain is None else f"{gain:.2f}"
