"""Signals of which no bit toggles in any run, and why."""

import re
from collections.abc import Iterable

from tests.coverage.lines import Counts

__all__ = ["UNKNOWN", "WHY", "untouched"]

UNKNOWN = "Nobody knows why"

WHY = {
    "Constants of AXI": r".* m_axi__((ar|aw)(id|prot)|[br]id)",
    "The simulator's bus answers always, and only what it was asked; `bus_master` of [proofs.md](proofs.md) proves "
    "that anything else is a fault": r".* (stray|dead)",
    "CV32E40X has decided on an instruction by the time that it offers the next; `xif_adapter` of "
    "[proofs.md](proofs.md) proves the adapter for cores that have not": r"adapter older.*",
    "The upper half of a counter of cycles takes 2^32 of them": r".* \w*cycles_high",
    "Both machines post-process the values of all lanes in one slice": r".* .*slice(_\d+)?|post.parameters place",
    "Only machines that post-process one value at a time see a lane's second channel in a slice of its own":
        r"mac(.sums_out)? i__payload.second",
    "The lanes of both machines take the bytes of a run at once": r"mac.sequencer step_part",
    "Only the unit of an extension writes in this way; both machines have none": r"mac own_written",
    "The instruction has no second operand": r"mac.sequencer set_group_step_rs2",
    "A layer has max pooling or a residual, never both, so nothing is merged behind the adder":
        r"post(.residual)? (added|o|mapping).*\.merge",
    "Nothing travels with a value through the requantisers: all of a pixel arrive together":
        r"post(.requantize_\d+)? .*\bmeta(_\d+)?",
    "A sum beyond 2^24 must round up to a power of two; `requantise` of [proofs.md](proofs.md) proves all sums":
        r"post.requantize_\d+ carry_\d+",
    "Each window of a compiled program is always of the same permission": r".* windows__\d.(read|writ)able",
    "What chaining writes begins in a word's first lane and is one pixel or part of it, never fill":
        r"store.writer (lane|(part|segments?(__payload)?)\.(ends_pixel|fill|lane|first_lane|pixel|value))",
    "Faults and aborts are those of words, which run on the smaller machine alone; it has no such part": r".* clear",
}
"""Reasons, and the signals that each explains, as part and name."""


def untouched(machines: Iterable[Counts]) -> dict[str, dict[tuple[str, ...], list[str]]]:
    """Return signals that toggle on none of the machines that have them, by reason: parts with their signals."""
    met: dict[tuple[str, str], int] = {}
    for counts in machines:
        for signal, count in counts.toggles().items():
            met[signal] = met.get(signal, 0) + count
    of_part: dict[tuple[str, str], list[str]] = {}
    for (part, name), count in sorted(met.items()):
        if not count:
            of_part.setdefault((_reason(part, name), part), []).append(f"`{name}`")
    found: dict[str, dict[tuple[str, ...], list[str]]] = {}
    for (reason, part), names in of_part.items():
        found.setdefault(reason, {}).setdefault(tuple(names), []).append(part)
    return found


def _reason(part: str, name: str) -> str:
    return next((why for why, signals in WHY.items() if re.fullmatch(signals, f"{part} {name}")), UNKNOWN)
