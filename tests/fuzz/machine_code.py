"""Instruction words and operands drawn at random, in RTL: ``python -m tests.fuzz.machine_code --words 100000``.

Two kinds of programs. Of *followed* ones every word is executed by isa/semantics too: words of custom-0 that are no
instruction trap, counts of zero and accesses outside the windows are faults, the first of the latter ends the program,
and the memory afterwards is the same. What the semantics refuse, since no hardware could execute it, is left out there.
*Wild* ones have such commands as well: each must end, by the watchdog if by nothing else, and memory outside the
windows, and in windows that may only be read, must be as it was. Exit status 1 if anything else happens.
"""

import argparse
import random
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tilewright.compiler.emit.elf import compile_elf
from tilewright.isa.assembler import EncodedCommand, command, encode_word, funct7
from tilewright.isa.counters import RECORD_WORDS, ZERO_COUNT
from tilewright.isa.counts import refused_count
from tilewright.isa.emit_c import header
from tilewright.isa.encoding import CUSTOM_0, INSTRUCTIONS, EncodingError, Field, Instruction, Variant
from tilewright.isa.lacking import variants_of
from tilewright.isa.machine import Machine, preset
from tilewright.isa.memory import MAIN_BASE, AddressWindow, Permission
from tilewright.isa.semantics.command_errors import CommandError
from tilewright.isa.semantics.coprocessor_state import CoprocessorState
from tilewright.isa.semantics.execute_command import execute_command
from tilewright.sim.rtl_engine import Provoked, Simulation, run_rtl
from tilewright.sim.run_result import RunResult, StopReason
from tilewright.sim.values.main_memory import MainMemory, WindowError

__all__ = ["MACHINE", "READ", "RS1", "RS2", "STATUS", "WRITTEN", "Campaign", "Expected", "Word", "main"]

MACHINE = replace(preset("nano"), name="fuzzed", watchdog_cycles=1024)
WORDS_PER_PROGRAM = 100
WILD = 4
"""Every so many programs is a wild one."""

_SOURCE = Path(__file__).with_suffix(".c")
RS1, RS2 = 10, 11
"""The registers that every word names."""

_TRAPPED = 2  # mcause of an illegal instruction
_MEMORY = 1 << 16
_TABLE, _NOTES, _RECORD = (MAIN_BASE + offset for offset in (0x8000, 0xC000, 0xF000))
READ = AddressWindow(MAIN_BASE + 0x1000, MAIN_BASE + 0x3000, Permission.READ, "read")
_BOTH = AddressWindow(MAIN_BASE + 0x4000, MAIN_BASE + 0x6000, Permission.READ_WRITE, "both")
WRITTEN = AddressWindow(MAIN_BASE + 0x6800, MAIN_BASE + 0x7000, Permission.WRITE, "written")
_RECORD_BYTES = 4 * RECORD_WORDS
STATUS = AddressWindow(_RECORD, _RECORD + 0x100, Permission.WRITE, "status")
_WINDOWS = (READ, _BOTH, WRITTEN, STATUS)
_VARIANTS = variants_of(MACHINE)
_WEIGHTS = [1 if variant.name.startswith("set_") or variant.unit == "host" else 6 if variant.name == "memory" else 3
            for _, variant in _VARIANTS]
_COUNTS = {"rows": 6, "chunks": 6, "chunk_bytes": 40, "words": 12, "tiles_x": 5, "tiles_y": 4, "groups": 3, "runs": 4,
           "kernel_x": 3, "kernel_y": 3, "channels": 40, "width": 12, "left": 3, "right": 3, "pair_words": 4}
"""Greatest values that are usual: with the operands' own limits most commands would leave a buffer."""


@dataclass(frozen=True, slots=True)
class Expected:
    """How an instruction word must end: taken or trapped, and the fault's code and address behind its fence."""

    trapped: bool = False
    code: int = 0
    address: int = 0


@dataclass(frozen=True, slots=True)
class Word:
    """An entry of the table: a word, its operands, whether a fence follows, and how it must end if that is known."""

    word: int
    rs1: int
    rs2: int
    fenced: bool = True
    expected: Expected | None = None


class _Model:
    """The semantics, one word after the other."""

    def __init__(self, machine: Machine, image: bytes) -> None:
        self.machine = machine
        self.state = CoprocessorState(machine)
        self.memory = MainMemory(_MEMORY, _WINDOWS)
        self.memory.put(MAIN_BASE, image)

    def expect(self, commands: list[EncodedCommand], *, may_leave: bool = False) -> Expected | None:
        """Execute commands that end together; None, and the state is as before, if no hardware could.

        Neither if they leave the windows, unless they ``may_leave`` them.
        """
        before, memory = deepcopy(self.state), self.memory.bytes.copy()
        for each in commands:
            if (address := refused_count(each, self.state.machine)) is not None:
                self.reset(before)
                return Expected(code=ZERO_COUNT, address=address)
            try:
                execute_command(self.state, self.memory, each)
            except WindowError as error:
                if not may_leave:
                    break
                return Expected(code=error.fault.code, address=error.fault.address)
            except CommandError:
                break
        else:
            # A fence waits for the array, and that for post-processing.
            if not self.state.sums:
                return Expected()
        self.state, self.memory.bytes = before, memory
        return None

    def reset(self, buffers: CoprocessorState) -> None:
        """Be as after an abort, with the buffers of a state."""
        self.state = CoprocessorState(self.machine)
        for name in ("activations", "results", "weight_words", "ninth_words", "parameters", "tables"):
            setattr(self.state, name, getattr(buffers, name))


class _Program:
    """Words drawn at random; ``wild`` ones without the model."""

    def __init__(self, rng: random.Random, machine: Machine, image: bytes, *, wild: bool) -> None:
        self.rng = rng
        self.machine = machine
        self.model = None if wild else _Model(machine, image)
        self.words: list[Word] = []
        self.drawn: Counter[str] = Counter()

    def draw(self, count: int) -> None:
        """Draw about ``count`` words; a fault that leaves a buffer half written ends the program."""
        self._settings()
        while len(self.words) < count:
            if self.rng.random() < 0.05:
                self._add_illegal()
                continue
            commands = self._commands()
            may_leave = self.rng.random() < 0.02
            expected = self.model.expect(commands, may_leave=may_leave) if self.model is not None else None
            if self.model is not None and expected is None:
                continue
            self._add(commands, expected)
            if expected is not None and expected.code == ZERO_COUNT:
                self._settings()
            elif expected is not None and expected.code:
                return

    def _add(self, commands: list[EncodedCommand], expected: Expected | None) -> None:
        for each in commands:
            last = each is commands[-1]
            self.words.append(Word(encode_word(each, RS1, RS2), each.rs1, each.rs2, last,
                                   expected if last else Expected() if self.model is not None else None))
            self.drawn[f"{each.instruction.mnemonic}.{each.variant.name}"] += 1

    def _add_illegal(self) -> None:
        """Add a word of custom-0 that is no instruction."""
        while True:
            word = self.rng.getrandbits(32) & ~(31 << 15 | 31 << 20 | 0x7FFF) | RS1 << 15 | RS2 << 20 | CUSTOM_0
            bare = EncodedCommand(self.rng.randrange(8), word >> 25, 0, 0)
            try:
                if bare.instruction.mnemonic != "extension":
                    _ = bare.variant
                    continue
            except EncodingError:
                pass
            self.words.append(Word(word | bare.funct3 << 12, self.rng.getrandbits(32), self.rng.getrandbits(32),
                                   expected=Expected(trapped=True)))
            self.drawn["none"] += 1
            return

    def _settings(self) -> None:
        """Add every set command once, so that nothing is as it was after reset."""
        for instruction, variant in _VARIANTS:
            if variant.name.startswith("set_") or variant.name == "window":
                while True:
                    drawn = [self._command(instruction, variant)]
                    expected = self.model.expect(drawn) if self.model is not None else None
                    if self.model is None or (expected is not None and not expected.code):
                        break
                self._add(drawn, expected)

    def _commands(self) -> list[EncodedCommand]:
        """Return a command, or one of the array and one that takes its sums."""
        instruction, variant = self.rng.choices(_VARIANTS, _WEIGHTS)[0]
        if variant.unit == "host":
            return [command("sta", "fence", abort=0)]
        if variant.name == "status":
            # The model knows no counters: nothing may read them.
            return [command("sta", "status", address=self.rng.randrange(STATUS.base, STATUS.limit - _RECORD_BYTES))]
        first = self._command(instruction, variant)
        if variant.unit != "mac" or variant.name.startswith("set_") or self.rng.random() < 0.1:
            return [first]
        act = next(each for each in INSTRUCTIONS if each.mnemonic == "act")
        return [first, self._command(act, act.variant("run"), rows=self._rows(first), residual=0,
                                     channels=first.operands["groups"] * self.machine.lanes,
                                     winograd=int(instruction.mnemonic == "conv23"))]

    def _rows(self, run: EncodedCommand) -> int:
        return run.operands["tiles_y"] * (2 if run.instruction.mnemonic == "conv23" else 1)

    def _command(self, instruction: Instruction, variant: Variant, **given: int) -> EncodedCommand:
        operands = {field.name: given.get(field.name, self._value(field)) for field in variant.fields}
        for low, high in (("low", "high"), ("residual_low", "residual_high")):
            if low in operands:
                operands[low], operands[high] = sorted((operands[low], operands[high]))
        flags = [flag.name for flag in variant.flags if flag is not None and self.rng.random() < 0.05]
        made = command(instruction.mnemonic, variant.name, flags, **operands)
        assert made.funct7 == funct7(variant, flags)
        return made

    def _value(self, field: Field) -> int:
        rng = self.rng
        if field.name == "address":
            window = rng.choice(_WINDOWS[:3])
            return rng.randrange(window.base, window.limit) if rng.random() < 0.97 else rng.getrandbits(32)
        if field.name in _COUNTS:
            least = 0 if rng.random() < 0.01 or field.name in ("left", "right", "pair_words") else 1
            return rng.randint(least, min(_COUNTS[field.name], field.range[-1]))
        if rng.random() < 0.01:
            return rng.choice(field.range)
        if field.width > 4 and not field.signed and ("step" in field.name or "base" in field.name
                                                     or field.name == "target"):
            most = 1 << rng.randrange(1, min(12, field.width + 1))
            return rng.randrange(most) // (unit := rng.choice((1, 4, 16))) * unit
        return rng.choice(field.range)


class Campaign:
    """Programs of random words, reproducible from ``seed``; ``failures`` says what went otherwise than it must.

    ``observe`` is told every word that was issued and how it ended; ``coverage`` is a file for what Verilator counts in
    the program that ran last.
    """

    def __init__(self, seed: int, folder: Path, machine: Machine = MACHINE,
                 observe: Callable[[Word, Expected], None] = lambda word, ended: None,
                 coverage: Path | None = None) -> None:
        self.observe = observe
        self.coverage = coverage
        self.seed = seed
        self.machine = machine
        self.words = 0
        self.drawn: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.failures: list[str] = []
        self.elf = folder / "machine_code.elf"
        (folder / "tilewright.h").write_text(header(), encoding="utf-8")
        source = folder / "machine_code.c"
        places = f"#define TABLE {_TABLE:#x}u\n#define TABLE_NOTES {_NOTES:#x}u\n#define TABLE_RECORD {_RECORD:#x}u\n"
        source.write_text(places + _SOURCE.read_text(encoding="utf-8"), encoding="utf-8")
        compile_elf(source, self.elf)

    def run(self, words: int) -> None:
        """Run programs until there were that many words."""
        number = 0
        while self.words < words:
            self.run_one(number)
            number += 1

    def run_one(self, number: int) -> None:
        """Run program ``number`` of the seed."""
        rng, wild = random.Random(self.seed * 1_000_003 + number), number % WILD == WILD - 1
        image = np.random.default_rng([self.seed, number]).bytes(0x8000)
        program = _Program(rng, self.machine, image, wild=wild)
        program.draw(WORDS_PER_PROGRAM)
        self.drawn += program.drawn
        memory = self.issue(f"program {number} of seed {self.seed}", program.words, image)
        words = program.words
        if memory is None:
            return
        if program.model is None:
            self._judge_untouched(f"program {number} of seed {self.seed}", image, memory)
        elif not (words[-1].expected and words[-1].expected.code) \
                and memory != (expected := program.model.memory.get(MAIN_BASE, 0x8000)):
            first = next(place for place in range(0x8000) if memory[place] != expected[place])
            self.failures.append(f"program {number} of seed {self.seed}: memory differs at {MAIN_BASE + first:#x}")

    def issue(self, where: str, words: list[Word], image: bytes, provoked: Provoked | None = None) -> bytes | None:
        """Issue the words, judge how each ended, and return what memory holds then; None if the program did not end."""
        result = self._run(words, image, provoked)
        self.words += len(words)
        if result.stop_reason not in (StopReason.EXIT, StopReason.FAULT) or result.exit_code:
            self.failures.append(f"{where}: it must end, not {result.stop_reason} with {result.exit_code}")
            return None
        memory, notes = result.dumps
        self._judge_notes(where, words, notes)
        return memory

    def _run(self, words: list[Word], image: bytes, provoked: Provoked | None) -> RunResult:
        table = struct.pack("<IIII", len(words), 0, 0, 0) + b"".join(
            struct.pack("<IIII", each.word, each.rs1, each.rs2, each.fenced) for each in words)
        return run_rtl(self.machine, self.elf, Simulation(
            coverage=self.coverage,
            images=[(MAIN_BASE, image), (_TABLE, table), (_NOTES, bytes(16 * len(words)))],
            dumps=[(MAIN_BASE, 0x8000), (_NOTES, 16 * len(words))], provoked=provoked, max_cycles=20_000_000),
            windows=_WINDOWS)

    def _judge_notes(self, where: str, words: list[Word], notes: bytes) -> None:
        for index, each in enumerate(words):
            code, address, trapped, _ = struct.unpack_from("<IIII", notes, 16 * index)
            found = Expected(trapped == _TRAPPED, code, address)
            self.ended["trapped" if trapped else f"code {code}"] += each.fenced
            self.observe(each, found)
            if each.expected is not None and found != each.expected:
                self.failures.append(f"{where}, word {index} ({each.word:#010x}, {each.rs1:#x}, {each.rs2:#x}): "
                                     f"{each.expected} was expected, {found} came")
                return

    def _judge_untouched(self, where: str, before: bytes, after: bytes) -> None:
        place = 0
        for window in sorted((_BOTH, WRITTEN), key=lambda each: each.base):
            stop = window.base - MAIN_BASE
            if before[place:stop] != after[place:stop]:
                self.failures.append(f"{where}: memory outside the windows was written")
            place = window.limit - MAIN_BASE
        if before[place:] != after[place:]:
            self.failures.append(f"{where}: memory outside the windows was written")


def main(arguments: list[str] | None = None) -> int:
    """Run a campaign and print what was drawn and how it ended; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        campaign = Campaign(options.seed, Path(folder))
        campaign.run(options.words)
    print("drawn:", ", ".join(f"{name} {count}" for name, count in sorted(campaign.drawn.items())))
    print("ended:", ", ".join(f"{name} {count}" for name, count in sorted(campaign.ended.items())))
    print(f"{campaign.words} words in {time.monotonic() - began:.0f} s, {len(campaign.failures)} failures")
    print(*campaign.failures, sep="\n")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
