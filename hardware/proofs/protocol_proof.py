"""The proof of the semaphores' protocol: no small program that the compiler's check accepts goes wrong in the model."""

import importlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import ModuleType

from tilewright.compiler.schedule.accesses import Reader
from tilewright.hardware.proofs.proved_designs import Mutant
from tilewright.hardware.proofs.proving import ProofRow, processor_seconds
from tilewright.hardware.proofs.small_programs import FAMILIES, SETTINGS, Family, Letter
from tilewright.hardware.proofs.unit_model import ModelledCommand, modelled, violation
from tilewright.hardware.proofs.unrolled_model import ProofError
from tilewright.isa.machine import preset

__all__ = ["NAME", "Found", "mutants", "prove_protocol", "search"]

NAME = "semaphore_protocol"
_CLAIM = """\
No program of these families that the compiler's check (`compiler/schedule/races.py`) accepts can deadlock, use a place
before it is ready or after it is given away, or lose an event: {families}. Each is every sequence of up to so many
commands, with every choice of their flags, and each accepted program is looked at in every state that the units can
reach in a model of them (`hardware/proofs/unit_model.py`) that may be faster or slower than any hardware. Queues hold
one command and semaphores count to one, two or three there, so that both limits are reached. That the gateware's units
keep to the model is tested, not proved; its queues, semaphores and dispatcher are proved above."""
_CHECK = "tilewright.compiler.schedule.races"
_MACHINE = replace(preset("nano"), coded_weights=True)


@dataclass(frozen=True, slots=True)
class Found:
    """Results of a search.

    Attributes
    ----------
    accepted, contended, states
        Programs that the check accepts; those of them in which commands of two units touch the same bytes; states of
        the units looked at.
    wrong
        An accepted program that goes wrong, and how; None if there is none.
    """

    accepted: int
    contended: int
    states: int
    wrong: str | None


def mutants() -> tuple[tuple[Mutant, str], ...]:
    """Return the bugs of the check that a search finds, each with the family in which it does."""
    def bug(name: str, family: str, old: str, new: str) -> tuple[Mutant, str]:
        return Mutant(name, _CHECK, old, new), family

    return (
        bug("a wait may starve", "loads and the array", "        if not waiting:\n            raise",
            "        if not waiting:\n            return _NOTHING\n            raise"),
        bug("a wait is for the last signal", "rings of two places", "waiting.popleft().clock", "waiting.pop().clock"),
        bug("what is read may be overwritten", "rings of two places", "if ((touch.write or access.write)",
            "if (touch.write"),
        bug("semaphores without a limit", "loads and the array", "if given <= self.sizes.events:", "if True:"),
        bug("a fence before an act", "sums and results", 'if self.sums:\n            raise RaceError(f"Command',
            'if False:\n            raise RaceError(f"Command'),
        bug("memory has what the store has read", "residuals out of memory", '{"memory": "memory", "activations"',
            '{"activations"'),
        bug("a copy is there when it has been read", "copies beside loads", '"activations": "copy"}.get(', "}.get("),
        bug("two signallers in any order", "copies beside loads",
            "if other != place and clock[UNITS.index(other)] < earlier:", "if False:"),
        bug("a later load tells of a residual", "residuals",
            'elif _is_residual(command) and access.space == "results":', "elif False:"),
        bug("sums may fill the array's queue", "a queue that is full", "self.sums[0].number > self.sizes.queue:",
            "self.sums[0].number > 99:"),
    )


def search(family: Family, check: ModuleType) -> Found:
    """Look at all programs of a family that ``check``, the module `compiler.schedule.races` or one like it, accepts."""
    reader = Reader(_MACHINE)
    for each in SETTINGS:
        reader.accesses(each)
    accepted = contended = states = 0
    for program in _accepted(family, check, ()):
        commands: tuple[ModelledCommand, ...] = modelled(program, reader)
        accepted += 1
        contended += any(each.conflicts for each in commands)
        wrong, looked = violation(commands, family.sizes)
        states += looked
        if wrong is not None:
            listed = "; ".join(map(str, program))
            return Found(accepted, contended, states, f"{wrong.what} at command {wrong.index} of: {listed}")
    return Found(accepted, contended, states, None)


def _accepted(family: Family, check: ModuleType, program: Letter, length: int = 0) -> Iterator[Letter]:
    """Yield the programs that begin so and are accepted.

    What the check refuses as it replays a command it refuses with anything behind that.
    """
    for letter in family.letters:
        longer = (*program, *letter)
        checker = check.Checker(_MACHINE, family.sizes)
        try:
            for each in (*SETTINGS, *longer):
                checker.replay(each)
        except check.RaceError:
            continue
        try:
            check.check((*SETTINGS, *longer), _MACHINE, family.sizes)
        except check.RaceError:
            pass
        else:
            yield longer
        if length + 1 < family.length:
            yield from _accepted(family, check, longer, length + 1)


def prove_protocol(progress: Callable[[str], None] = lambda _: None) -> ProofRow:
    """Return what comes of the search through all families, and of the mutants of the check."""
    start = processor_seconds()
    refuted: list[str] = []
    found: list[Found] = []
    failure = ""
    try:
        for family in FAMILIES:
            progress(f"{NAME}: {family.name}")
            found.append(search(family, importlib.import_module(_CHECK)))
            if found[-1].wrong:
                raise ProofError(f"The check accepts a program of the family {family.name!r} with a {found[-1].wrong}")
            if not found[-1].contended:
                raise ProofError(f"The family {family.name!r} must have an accepted program in which units share bytes")
        for mutant, name in mutants():
            progress(f"{NAME}: mutant: {mutant.name}")
            if not search(next(each for each in FAMILIES if each.name == name), mutated(mutant)).wrong:
                raise ProofError(f"The model must refute the mutant {mutant.name!r} of the check, and does not")
            refuted.append(mutant.name)
    except ProofError as error:
        failure = str(error)
    families = "; ".join(f"{each.name} ({each.length})" for each in FAMILIES)
    programs, contended, states = (sum(getattr(each, name) for each in found)
                                   for name in ("accepted", "contended", "states"))
    return ProofRow(NAME, " ".join(_CLAIM.format(families=families).split()), f"every state of {programs:,} programs",
                    failure, processor_seconds() - start, f"{contended:,} of them share bytes, {states:,} states",
                    tuple(refuted))


def mutated(mutant: Mutant) -> ModuleType:
    """Return the check with a bug."""
    original = importlib.import_module(mutant.module)
    source = inspect.getsource(original)
    if source.count(mutant.old) != 1:
        raise ProofError(f"Mutant {mutant.name!r} must find its text in {mutant.module} once, not "
                         f"{source.count(mutant.old)} times; mend the mutant: {mutant.old!r}")
    changed = ModuleType(mutant.module)
    exec(compile(source.replace(mutant.old, mutant.new), mutant.name, "exec"), changed.__dict__)
    return changed
