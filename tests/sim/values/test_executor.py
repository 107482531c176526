"""Exceptions that leave the executor: breaches of the windows as such, and defects of the engine as they are."""

import re

import pytest

from tests.support.coprocessor_state import SIZE, engine_of, run, set_store
from tilewright.isa.machine import preset
from tilewright.isa.memory import MAIN_BASE
from tilewright.isa.semantics import execute_command
from tilewright.sim.values.main_memory import WindowError

READY = (("lda.set_row", {"chunk_bytes": 16, "chunks": 1}), ("lda.set_step", {"row_step": 16}),
         ("lda.set_layout", {"chunk_step": 40, "channels": 3, "left": 2, "right": 1, "value": -7}))


@pytest.mark.parametrize("commands", [
    [*READY, ("lda.linear", {"address": MAIN_BASE + SIZE - 8, "rows": 1})],
    [("ldw.main", {"address": MAIN_BASE + SIZE - 8, "words": 2})],
    [*set_store(9, 100), ("sta.memory", {"rows": 1, "address": MAIN_BASE + SIZE - 10})],
    [("sta.status", {"address": 0})],
], ids=lambda commands: commands[-1][0])
def test_a_breach_of_the_windows(commands):
    message = "^" + re.escape("A DMA request must stay inside a window (0x80000000..0x80010000), not ")
    with pytest.raises(WindowError, match=message):
        run(engine_of(preset("base")), *commands)


@pytest.mark.parametrize("defect", [KeyError("rows"), IndexError("list index out of range")], ids=repr)
def test_a_defect_of_the_engine_is_not_told_as_one_of_the_program(defect, monkeypatch):
    def broken(state, memory, variant, operands):
        raise defect
    monkeypatch.setitem(execute_command.EFFECTS, "ldw", broken)
    with pytest.raises(type(defect)) as caught:
        run(engine_of(preset("base")), ("ldw.main", {"address": MAIN_BASE, "words": 1}))
    assert caught.value is defect
