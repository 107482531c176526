"""The page docs/ablation.md: Markdown tables, one of areas for each machine and one of costs for each network."""

from collections.abc import Iterator

from tilewright.bench.ablation.ablation import Ablation, AblationRow
from tilewright.tools.markdown import change, digits, table

__all__ = ["area_lost", "by_machine", "gain_of", "gains", "page", "resources", "signed"]

_INTRODUCTION = """\
# What each instruction and unit earns

Each row takes one unit out of the machine. The gateware then lacks it, the compiler uses another instruction or the
host core, and every tensor stays the same to the bit. A unit that a network does not need changes nothing.

Cycles are those of engine `cycles`, which equal those of `fast`. Energies are predicted with the toggles of typical
data. *Factor* is the cycles without the unit over those with it. Below 1 the machine is faster without the unit.
"""

_GAIN = """\
Tables of areas show what the machine takes, and how much less it takes without each unit.

*Gain per area* is the gain in speed over the growth in area, both in per cent of the machine without the unit. Above 1
a unit is worth its area, at 0 the network does not use it, and a missing figure means that the unit takes no area.
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
    for machine, groups in by_machine(found).items():
        parts.append(f"## Area of {machine}\n\n{_areas(groups[0])}\n")
        for rows in groups:
            having = rows[0].having
            parts.append(f"## {rows[0].model} on {machine}\n\nWith all: {having.cycles:,} cycles, {having.bytes:,} "
                         f"bytes, {digits(having.energy_uj)} µJ.\n\n{_costs(rows)}\n")
    return "\n".join(parts)


def by_machine(found: Ablation) -> dict[str, list[list[AblationRow]]]:
    """Return for each machine the rows of each network. Those of one machine name the same units in the same order."""
    networks: dict[tuple[str, str], list[AblationRow]] = {}
    for row in found.rows:
        networks.setdefault((row.machine, row.model), []).append(row)
    machines: dict[str, list[list[AblationRow]]] = {}
    for (machine, _), rows in networks.items():
        machines.setdefault(machine, []).append(rows)
    return machines


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


def _areas(rows: list[AblationRow]) -> str:
    """Return the table of what each unit takes."""
    measured = resources(rows)
    heads = ["unit", "instructions that go with it", *(f"{resource}, {target}" for target, resource in measured)]
    whole = ["*the machine*", "", *(digits(rows[0].area_with[target][resource]) for target, resource in measured)]
    return table(heads, [whole, *(
        [row.unit, ", ".join(f"`{name}`" for name in row.instructions) or "an operand's field",
         *(signed(area_lost(row, *each)) for each in measured)] for row in rows)], left=2)


def area_lost(row: AblationRow, target: str, resource: str) -> float:
    """Return how much of a resource the machine without the unit takes more, thus a number below 0."""
    return row.area_without[target][resource] - row.area_with[target][resource]


def signed(value: float) -> str:
    """Return a whole number with its sign, and 0 without."""
    return f"{value:+,.0f}" if abs(value) >= 0.5 else "0"


def gain_of(row: AblationRow, target: str, resource: str) -> str:
    """Return the gain per area with two digits, a dash if there is none, and no sign before 0.00."""
    gain = row.gain_per_area(target, resource)
    return "–" if gain is None else f"{round(gain, 2) + 0.0:.2f}"


def _costs(rows: list[AblationRow]) -> str:
    """Return the table of what each unit brings."""
    priced = gains(rows)
    heads = ["unit", "cycles without", "factor", "bytes", "energy",
             *(f"gain per {resource}, {target}" for target, resource in priced)]
    return table(heads, (list(_cells(row, priced)) for row in rows), left=1)


def _cells(row: AblationRow, priced: list[tuple[str, str]]) -> Iterator[str]:
    yield row.unit
    if row.without is None:
        yield from (f"does not compile: {row.reason}", "–", "–", "–")
    else:
        yield from (f"{row.without.cycles:,}", f"{row.speedup:.3f}", change(row.without.bytes, row.having.bytes),
                    change(row.without.energy_uj, row.having.energy_uj))
    for target, resource in priced:
        yield gain_of(row, target, resource)
