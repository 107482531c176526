"""The semaphores' protocol in a model of the units: the compiler's check against every small program."""

import importlib

import pytest

from tilewright.compiler.schedule import races
from tilewright.compiler.schedule.accesses import Reader
from tilewright.compiler.schedule.races import RaceError, Sizes
from tilewright.hardware.proofs.protocol_proof import mutants, mutated, search
from tilewright.hardware.proofs.small_programs import FAMILIES, SETTINGS
from tilewright.hardware.proofs.unit_model import modelled, violation
from tilewright.isa.assembler import EncodedCommand, parse
from tilewright.isa.machine import preset

MACHINE = preset("nano")
SMALL = Sizes(1, 2)
LOAD = "lda.linear address=0x80000000 base=0 rows=1 y=0"
ARRAY = "conv.run base=0 tiles_y=1 y_half=0 weight_base=0 groups=1 accumulate=0"
ACT = ("act.run base=0 rows=1 winograd=0 shared=0 parameter_base=0 channels=8 residual=0 pooled=0 table=0 table_slot=0 "
       "table_first=0 whole=0")


def wrong(*program: str, sizes: Sizes = SMALL) -> str | None:
    """Return what the model finds wrong with a program."""
    reader = Reader(MACHINE)
    for each in SETTINGS:
        reader.accesses(each)
    found, _ = violation(modelled([parse(text) for text in program], reader), sizes)
    return found and found.what


def accepted(*program: str, sizes: Sizes = SMALL) -> bool:
    """Tell whether the compiler's check accepts it."""
    commands: tuple[EncodedCommand, ...] = (*SETTINGS, *(parse(text) for text in program))
    try:
        races.check(commands, MACHINE, sizes)
    except RaceError:
        return False
    return True


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.name)
def test_what_the_check_accepts_goes_right(family) -> None:
    found = search(family, importlib.import_module("tilewright.compiler.schedule.races"))
    assert found.wrong is None
    assert found.contended


@pytest.mark.parametrize(("mutant", "name"), mutants(), ids=lambda each: getattr(each, "name", None))
def test_bug_of_the_check_is_found(mutant, name) -> None:
    assert search(next(each for each in FAMILIES if each.name == name), mutated(mutant)).wrong


def test_loads_that_are_waited_for_go_right() -> None:
    program = (f"{LOAD} signal_act_ready", f"{ARRAY} hold=1 wait_act_ready")
    assert wrong(*program) is None
    assert accepted(*program)


def test_use_before_ready_is_a_race() -> None:
    program = (LOAD, f"{ARRAY} hold=1")
    assert wrong(*program) == "race"
    assert not accepted(*program)


def test_wait_without_a_signal_is_a_deadlock() -> None:
    assert wrong(f"{ARRAY} hold=1 wait_act_ready") == "deadlock"


def test_more_events_than_a_semaphore_counts_overflow() -> None:
    assert wrong(f"{LOAD} signal_act_ready", f"{LOAD} signal_act_ready", sizes=Sizes(1, 1)) == "overflow"


def test_sums_that_no_act_takes_must_leave_room_in_the_queue() -> None:
    sums = f"{ARRAY} hold=0"
    for ahead, right in ((2, True), (3, False)):
        program = (*[sums] * ahead, *[ACT] * ahead)
        assert (wrong(*program) is None) is right
        assert accepted(*program) is right
