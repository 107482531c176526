"""Words that go straight for a point: operands at their limits, flags one by one, waits that starve, faults."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, cycle

from tests.coverage.points import classes, named
from tests.fuzz.machine_code import MACHINE, READ, RS1, RS2, STATUS, WRITTEN, Word
from tilewright.isa.assembler import EncodedCommand, command, encode_word
from tilewright.isa.counters import (
    READ_ERROR,
    READ_OUTSIDE,
    SEMAPHORE_OVERFLOW,
    WATCHDOG,
    WRITE_ERROR,
    WRITE_OUTSIDE,
    ZERO_COUNT,
)
from tilewright.isa.counts import COUNTS
from tilewright.isa.encoding import SEMAPHORE_WIDTH, Instruction, Variant
from tilewright.sim.rtl_engine import Provoked

__all__ = ["Directed", "programs"]

_PLAIN = {"chunk_bytes": 16, "channels": MACHINE.lanes, "pixel_step": 16, "high": 127, "residual_high": 127, "hold": 1}
"""Operands that are neither 0 nor, being counts, 1."""

_LONGEST = 760
"""Words of a program: their notes end in front of the record."""

_STOPPED_AT = 1500


@dataclass(frozen=True, slots=True)
class Directed:
    """A program: its words, the fault code with which each fenced one must end if that is known, and the mishap."""

    name: str
    words: list[Word]
    codes: list[int | None]
    provoked: Provoked | None = None


def programs() -> Iterator[Directed]:
    """Yield all of them, as many as fit put into one."""
    words: list[Word] = []
    codes: list[int | None] = []
    for each in chain(_operands(), _semaphores(), [_starving()], _queued(), _overflowing(), [_zero()], _outside()):
        if len(words) + len(each.words) > _LONGEST:
            yield Directed("directed words", words, codes)
            words, codes = [], []
        words += each.words
        codes += each.codes
    yield Directed("directed words", words, codes)
    yield from _failing()


def _command(instruction: Instruction, variant: Variant, flags: tuple[str, ...] = (), **given: int) -> EncodedCommand:
    """Return a command that does little, but for the operands given."""
    counts = COUNTS.get((instruction.mnemonic, variant.name), ())
    operands = {field.name: _PLAIN.get(field.name, int(field.name in counts)) for field in variant.fields}
    if "address" in operands:
        operands["address"] = READ.base if variant.unit == "load" else WRITTEN.base
        if variant.name == "status":
            operands["address"] = STATUS.base
    return command(instruction.mnemonic, variant.name, flags, **(operands | given))


def _word(made: EncodedCommand, *, fenced: bool = True) -> Word:
    return Word(encode_word(made, RS1, RS2), made.rs1, made.rs2, fenced)


def _settings() -> list[Word]:
    """Return every set command once, so that what follows is small."""
    return [_word(_command(*each)) for each in named() if _sets(each[1])]


def _sets(variant: Variant) -> bool:
    return variant.name.startswith("set_") or variant.name == "window"


def _operands() -> Iterator[Directed]:
    """Each operand in each of its classes; behind what it sets, the plain settings again."""
    words: list[Word] = []
    for instruction, variant in named():
        for field in variant.fields:
            for values in classes(instruction, variant, field).values():
                given = {field.name: values[len(values) // 2]}
                for low, high in (("low", "high"), ("residual_low", "residual_high")):
                    if field.name in (low, high):
                        given = {low: min(given[field.name], 0) if field.name == low else -128, high: 127} | given
                        if given[low] > given[high]:
                            given = {low: given[field.name], high: given[field.name]}
                words.append(_word(_command(instruction, variant, **given)))
                if _sets(variant):
                    words.append(_word(_command(instruction, variant)))
        if len(words) > _LONGEST // 3:
            yield _unjudged("operands", words)
            words = []
    yield _unjudged("operands", words)


def _unjudged(name: str, words: list[Word]) -> Directed:
    head = _settings()
    return Directed(name, head + words, [None] * (len(head) + len(words)))


def _flagged(action: str) -> Iterator[tuple[Instruction, Variant, str, str]]:
    for instruction, variant in named():
        for flag in variant.flags:
            if flag is not None and flag.action == action:
                yield instruction, variant, flag.name, flag.semaphore


def _semaphores() -> Iterator[Directed]:
    """Each wait behind each variant's signal of its semaphore."""
    signallers: dict[str, list[tuple[Instruction, Variant, str]]] = {}
    for instruction, variant, flag, semaphore in _flagged("signal"):
        signallers.setdefault(semaphore, []).append((instruction, variant, flag))
    words: list[Word] = []
    for instruction, variant, flag, semaphore in _flagged("wait"):
        for signaller, signals, signal in signallers[semaphore]:
            words += _complete(signaller, signals, signal)
            words += _complete(instruction, variant, flag)
    yield _judged("semaphores", words, 0)


def _complete(instruction: Instruction, variant: Variant, flag: str) -> list[Word]:
    """Return words of which the last is the command with the flag, and all of which end."""
    made = _command(instruction, variant, (flag,))
    if instruction.mnemonic != "act":
        return [_word(made)]
    array = next(each for each in named() if each[0].mnemonic == "conv" and each[1].name == "run")
    return [_word(_command(*array, hold=0), fenced=False), _word(made)]


def _judged(name: str, words: list[Word], code: int) -> Directed:
    head = _settings()
    return Directed(name, head + words, [0] * len(head) + [code if each.fenced else None for each in words])


def _starving() -> Directed:
    """Each wait for what nobody signals, and sums that nobody takes."""
    words = [_word(_command(instruction, variant, (flag,))) for instruction, variant, flag, _ in _flagged("wait")]
    for instruction, variant in named():
        if variant.unit == "mac" and not _sets(variant):
            words += [_word(_command(instruction, variant, hold=0), fenced=last) for last in (False,) * 7 + (True,)]
    return _judged("waits that starve", words, WATCHDOG)


def _queued() -> Iterator[Directed]:
    """More commands than a queue holds behind one that waits, for each unit: the host is held up in front of it."""
    for mnemonic, name, flag in (("ldw", "main", "wait_wgt_free"), ("conv", "run", "wait_act_ready"),
                                 ("act", "run", "wait_out_free"), ("sta", "memory", "wait_out_ready")):
        each = next(pair for pair in named() if (pair[0].mnemonic, pair[1].name) == (mnemonic, name))
        words = [_word(_command(*each, (flag,)), fenced=False) for _ in range(MACHINE.queue_depth + 8)]
        yield _judged(f"a full queue of {mnemonic}.{name}", [*words, _word(_command(*each))], WATCHDOG)


def _overflowing() -> Iterator[Directed]:
    """One signal more than its semaphore counts, of each variant."""
    for instruction, variant, flag, _ in _flagged("signal"):
        one = _complete(instruction, variant, flag)
        unfenced = [Word(each.word, each.rs1, each.rs2, fenced=False) for each in one]
        yield _judged(f"overflow of {instruction.mnemonic}.{variant.name}",
                      [*unfenced * ((1 << SEMAPHORE_WIDTH) - 1), *one], SEMAPHORE_OVERFLOW)


def _zero() -> Directed:
    """Each count at zero."""
    return _judged("counts of zero", [
        _word(_command(instruction, variant, **{count: 0})) for instruction, variant in named()
        for count in COUNTS.get((instruction.mnemonic, variant.name), ())], ZERO_COUNT)


def _outside() -> Iterator[Directed]:
    """Addresses outside the windows."""
    for reads, code in ((True, READ_OUTSIDE), (False, WRITE_OUTSIDE)):
        found = [each for each in named() if "address" in {field.name for field in each[1].fields}
                 and (each[1].unit == "load") == reads]
        words = []
        for each in found:
            words += [*_settings(), _word(_command(*each, address=64))]
        yield Directed("outside the windows", words, [code if each.rs1 == 64 and each.word >> 12 & 7 in (0, 1, 6)
                                                      and each.fenced else None for each in words])


def _failing() -> Iterator[Directed]:
    """The first burst answered with an error, SLVERR and DECERR by turns; and a stop in the middle."""
    responses = cycle((2, 3))
    for instruction, variant in named():
        if "address" not in {field.name for field in variant.fields}:
            continue
        reads = variant.unit == "load"
        words = [*_settings(), _word(_command(instruction, variant))]
        provoked = Provoked(fail_read=int(reads), fail_write=int(not reads), fail_response=next(responses))
        yield Directed("an error on the bus", words,
                       [None] * (len(words) - 1) + [READ_ERROR if reads else WRITE_ERROR], provoked)
    words = [*_settings()] * 4
    yield Directed("a stop", words, [None] * len(words), Provoked(stop_at=_STOPPED_AT))
