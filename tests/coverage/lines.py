"""Lines and toggles as Verilator counts them: its files read, added up, and put together by module."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Covered", "added", "by_module", "untouched"]

_ENTRY = re.compile(r"^C '(.*)' (\d+)$")
_PART = re.compile("\x01([^\x02]*)\x02([^\x01]*)")


@dataclass(slots=True)
class Covered:
    """Lines and branches, and toggles of signals' bits, of a module: those that a run has come across, and all."""

    lines: int = 0
    lines_met: int = 0
    toggles: int = 0
    toggles_met: int = 0


def added(files: Iterable[Path]) -> dict[str, int]:
    """Return how often each point of Verilator was met in all of the files.

    Raises
    ------
    ValueError
        If a file has no point.
    """
    counts: dict[str, int] = {}
    for path in files:
        found = [entry for line in path.read_text().splitlines() if (entry := _ENTRY.match(line))]
        if not found:
            raise ValueError(f"Coverage file {path} must have points, and has none")
        for entry in found:
            counts[entry[1]] = counts.get(entry[1], 0) + int(entry[2])
    return counts


def by_module(counts: Mapping[str, int]) -> dict[str, Covered]:
    """Return what of each unit of the coprocessor was met: modules by the first two names of their paths."""
    found: dict[str, Covered] = {}
    for point, count in counts.items():
        kind, module, _ = _read(point)
        each = found.setdefault(module, Covered())
        if "toggle" in kind:
            each.toggles += 1
            each.toggles_met += count > 0
        else:
            each.lines += 1
            each.lines_met += count > 0
    return dict(sorted(found.items()))


def untouched(counts: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the signals of each unit of which no bit has toggled."""
    met: dict[tuple[str, str], int] = {}
    for point, count in counts.items():
        kind, module, comment = _read(point)
        if "toggle" in kind:
            signal = module, comment.partition("[")[0].partition(":")[0]
            met[signal] = met.get(signal, 0) + count
    found: dict[str, list[str]] = {}
    for (module, signal), count in sorted(met.items()):
        if not count:
            found.setdefault(module, []).append(f"`{signal}`")
    return found


def _read(point: str) -> tuple[str, str, str]:
    """Return the kind of a point, the unit and part that its module belongs to, and what it is about."""
    parts = dict(_PART.findall(point))
    kind, _, module = parts["page"].partition("/")
    path = re.sub(r"\$\d+", "", module.replace("__DOT__", ".").strip("\\ ")).split(".")[1:3]
    return kind, ".".join(path) or "ports", parts.get("o", "")
