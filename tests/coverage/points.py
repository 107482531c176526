"""Functional cover points: what instruction words, operands, flags, stalls and faults a campaign must come across."""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.fuzz.machine_code import MACHINE, Expected, Word
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.counters import (
    FAULTS,
    READ_ERROR,
    READ_OUTSIDE,
    SEMAPHORE_OVERFLOW,
    STOPPED,
    STRAY_RESPONSE,
    WATCHDOG,
    WRITE_ERROR,
    WRITE_OUTSIDE,
    ZERO_COUNT,
)
from tilewright.isa.counts import COUNTS
from tilewright.isa.encoding import INSTRUCTIONS, EncodingError, Field, Instruction, Variant
from tilewright.isa.lacking import variants_of

__all__ = ["CAUSES", "Monitor", "Point", "classes", "named", "points"]

Named = tuple[Instruction, Variant]

CAUSES = {
    "operand": "each operand at its least value, at its greatest, and between",
    "signal": "each signal given",
    "wait": "each wait met",
    "stall": "each wait that nobody meets, each unit's queue full behind such a wait, sums that nobody takes",
    "fault": "each fault that the variant can raise; of counts of zero each operand",
    "trap": "words that are no instruction",
}
"""Kinds of points."""

_READS, _WRITES = ({(instruction.mnemonic, variant.name) for instruction in INSTRUCTIONS
                    for variant in instruction.variants
                    if variant.unit == unit and "address" in {field.name for field in variant.fields}}
                   for unit in ("load", "store"))
TRAPS = ("funct3 without an instruction", "variant that the instruction lacks", "flag that the variant lacks")


@dataclass(frozen=True, slots=True, order=True)
class Point:
    """Something that a run can come across: of which kind, with which variant of an instruction, and what it is."""

    kind: str
    variant: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} {self.variant}: {self.detail}"


def named() -> Iterator[Named]:
    """Yield every variant of the campaign's machine with its instruction."""
    return iter(variants_of(MACHINE))


def classes(instruction: Instruction, variant: Variant, field: Field) -> dict[str, range]:
    """Return the classes of an operand's values; one of a bit has none between, and 0 is no value of a count."""
    whole = field.range[int(field.name in COUNTS.get((instruction.mnemonic, variant.name), ())):]
    found = {"least": whole[:1], "greatest": whole[-1:], "between": whole[1:-1]}
    return {name: values for name, values in found.items() if len(values)}


def points() -> frozenset[Point]:
    """Return all of them."""
    return frozenset(_points())


def _points() -> Iterator[Point]:
    for instruction, variant in named():
        name, counts = _name(instruction, variant), COUNTS.get((instruction.mnemonic, variant.name), ())
        for field in variant.fields:
            for each in classes(instruction, variant, field):
                yield Point("operand", name, f"{field.name} {each}")
        for flag in variant.flags:
            if flag is not None and flag.action == "signal":
                yield Point("signal", name, flag.semaphore)
                yield Point("fault", name, f"{FAULTS[SEMAPHORE_OVERFLOW]}: {flag.semaphore}")
            elif flag is not None:
                yield Point("wait", name, flag.semaphore)
                yield Point("stall", name, flag.semaphore)
        for count in counts:
            yield Point("fault", name, f"{FAULTS[ZERO_COUNT]}: {count}")
        for code in _bus_faults((instruction.mnemonic, variant.name)):
            yield Point("fault", name, FAULTS[code])
        if variant.unit == "mac" and not variant.name.startswith("set_"):
            yield Point("stall", name, "sums")
    for unit in ("load", "mac", "post", "store"):
        yield Point("stall", unit, "commands queued")
    for code in (STOPPED, STRAY_RESPONSE):
        yield Point("fault", "any", FAULTS[code])
    for trap in TRAPS:
        yield Point("trap", "any", trap)


def _bus_faults(variant: tuple[str, str]) -> tuple[int, ...]:
    if variant in _READS:
        return READ_OUTSIDE, READ_ERROR
    return (WRITE_OUTSIDE, WRITE_ERROR) if variant in _WRITES else ()


class Monitor:
    """Takes note of the points that words have come across as they were issued in RTL."""

    def __init__(self) -> None:
        self.counts: dict[Point, int] = {}

    def observe(self, word: Word, ended: Expected) -> None:
        """Take note of a word and how it ended: what `tests.fuzz.machine_code.Campaign` observes."""
        command = EncodedCommand(word.word >> 12 & 7, word.word >> 25, word.rs1, word.rs2)
        if ended.trapped:
            self._note(Point("trap", "any", _trap(command)))
            return
        name = f"{command.instruction.mnemonic}.{command.variant.name}"
        for field in command.variant.fields:
            value = command.operands[field.name]
            for each, values in classes(command.instruction, command.variant, field).items():
                if value in values:
                    self._note(Point("operand", name, f"{field.name} {each}"))
        if not word.fenced:
            return
        flags = [flag for i, flag in enumerate(command.variant.flags) if flag is not None and command.funct7 >> i & 1]
        for flag in flags:
            if ended.code == 0:
                self._note(Point(flag.action, name, flag.semaphore))
            elif flag.action == "signal" and ended.code == SEMAPHORE_OVERFLOW:
                self._note(Point("fault", name, f"{FAULTS[SEMAPHORE_OVERFLOW]}: {flag.semaphore}"))
        if ended.code == WATCHDOG:
            self._note_stall(name, command, [flag.semaphore for flag in flags if flag.action == "wait"], ended.address)
        elif ended.code == ZERO_COUNT:
            zeros = [each for each in COUNTS.get((command.instruction.mnemonic, command.variant.name), ())
                     if not command.operands[each]]
            if len(zeros) == 1:
                self._note(Point("fault", name, f"{FAULTS[ZERO_COUNT]}: {zeros[0]}"))
        elif ended.code in (STOPPED, STRAY_RESPONSE):
            self._note(Point("fault", "any", FAULTS[ended.code]))
        elif ended.code not in (0, SEMAPHORE_OVERFLOW):
            self._note(Point("fault", name, FAULTS[ended.code]))

    def _note_stall(self, name: str, command: EncodedCommand, waits: list[str], state: int) -> None:
        """Note what nothing came of: one wait, or sums; ``state`` is the address of the watchdog's fault."""
        if len(waits) == 1:
            self._note(Point("stall", name, waits[0]))
        elif not waits and command.variant.unit == "mac":
            self._note(Point("stall", name, "sums"))
        for place, unit in enumerate(("load", "mac", "post", "store")):
            if state >> 7 >> place & 1:
                self._note(Point("stall", unit, "commands queued"))

    def _note(self, point: Point) -> None:
        self.counts[point] = self.counts.get(point, 0) + 1


def _name(instruction: Instruction, variant: Variant) -> str:
    return f"{instruction.mnemonic}.{variant.name}"


def _trap(command: EncodedCommand) -> str:
    try:
        instruction = command.instruction
    except EncodingError:
        return TRAPS[0]
    if instruction.mnemonic == "extension":
        return TRAPS[0]
    if any(each.code == command.funct7 >> 4 for each in instruction.variants):
        return TRAPS[2]
    return TRAPS[1]
