"""The prover itself, run on properties that take seconds, and on ones that are wrong."""

from dataclasses import replace

import pytest

from tilewright.hardware.proofs.properties import PROPERTIES, Property
from tilewright.hardware.proofs.proved_designs import Mutant
from tilewright.hardware.proofs.proving import prove

QUEUE = next(each for each in PROPERTIES if each.name == "command_queue")


COLLISIONS = next(each for each in PROPERTIES if each.name == "collisions")
SLOW = {"erasure", "integer_requantise", "integers_alone", "recovery", "registers_stop", "xif_adapter", "xif_stop"}
"""Take a minute or two each; `make prove` and the slow tests have them."""


@pytest.mark.parametrize("wanted", [pytest.param(each, id=each.name, marks=[pytest.mark.slow] * (each.name in SLOW))
                                    for each in PROPERTIES])
def test_properties_are_proved_and_their_mutants_refuted(wanted: Property) -> None:
    row = prove(wanted, seconds=240)
    assert not row.failure
    assert row.covers
    assert row.mutants == tuple(mutant.name for mutant in wanted.mutants)


def test_harmless_mutant_is_not_refuted() -> None:
    harmless = Mutant("harmless", "tilewright.rtl.stream.commands", "fifo.level == 0", "~fifo.level.any()")
    row = prove(replace(QUEUE, mutants=(harmless,)), seconds=60)
    assert row.failure
    assert not row.mutants


def test_a_word_read_while_it_is_written_is_any_word_in_one_proof_and_the_old_one_in_the_other() -> None:
    relies = COLLISIONS.mutants[0]
    assert prove(replace(COLLISIONS, mutants=(relies,)), seconds=60).mutants == (relies.name,)
    assert not prove(replace(QUEUE, mutants=(relies,)), seconds=60).mutants


def test_mutant_without_its_text_is_refused() -> None:
    absent = Mutant("absent", "tilewright.rtl.stream.commands", "no such text", "")
    assert prove(replace(QUEUE, mutants=(absent,)), seconds=60).failure


def test_cover_beyond_the_bound_is_a_failure() -> None:
    assert prove(replace(QUEUE, bound=2, mutants=()), seconds=60).failure


def test_mutants_leave_the_modules_as_they_were() -> None:
    sound = QUEUE.design.verilog()
    assert QUEUE.design.verilog(QUEUE.mutants[0]) != sound
    assert QUEUE.design.verilog() == sound


def test_every_property_has_mutants() -> None:
    assert all(each.mutants for each in PROPERTIES)
