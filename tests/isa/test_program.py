"""Programs: loops expand in order, and the JSON form loses nothing."""

import pytest

from tilewright.isa.program import Function, Loop, Program, ProgramError, from_json, issue, step, to_json

PROGRAM = Program((
    Function("conv1", "two strips", (
        issue("lda", "set_row", chunk_bytes=32, chunks=1, memory_chunk_step=0),
        Loop("i", 3, (
            issue("lda", "linear", "signal_act_ready", address=step("i", 256) + 0x80000000, base=step("i", 512, 2),
                  rows=4),
            Loop("j", 2, (issue("conv", "run", "wait_act_ready", tiles_y=step("j", 1) + 1, groups=1),)),
        )),
    )),
    Function("end", "", (issue("sta", "fence"),)),
))


def test_loops_expand_in_order_with_their_operands():
    text = [f"{index} {command}" for index, command in PROGRAM.commands()]
    assert len(text) == 1 + 3 * 3 + 1
    assert text[1] == "0 lda.linear address=0x80000000 base=0 rows=4 y=0 signal_act_ready"
    assert text[4] == "0 lda.linear address=0x80000100 base=512 rows=4 y=0 signal_act_ready"
    assert text[7] == "0 lda.linear address=0x80000200 base=0 rows=4 y=0 signal_act_ready"
    assert "tiles_y=2" in text[9]
    assert text[10] == "1 sta.fence abort=0 notify=0 erase=0"


def test_the_json_form_loses_nothing():
    assert list(from_json(to_json(PROGRAM)).commands()) == list(PROGRAM.commands())


@pytest.mark.parametrize("data", [None, {}, [1], [{"name": "x"}], [{"name": "x", "comment": "", "body": [{}]}]])
def test_a_malformed_program_is_refused(data):
    with pytest.raises(ProgramError, match=r"Program .*to_json"):
        from_json(data if data != {} else {"a": 1})
