"""Errors of isa/, word by word."""

import pytest

from tests.support.wording import raised_by
from tilewright.isa.assembler import command
from tilewright.isa.encoding import INSTRUCTIONS, check_table

SENTENCES = {
    "EncodingError: Operand rows must be in 0..1023, not 1024": lambda: command("lda", "linear", rows=1024),
    "EncodingError: sta.fence has the operands abort, not 'rows'": lambda: command("sta", "fence", rows=1),
    "EncodingError: Variant set_row has the flags none, not 'wait_act_ready'":
        lambda: command("lda", "set_row", ["wait_act_ready"]),
    "EncodingError: Every instruction must have a funct3 of its own, not [0, 0]":
        lambda: check_table(INSTRUCTIONS[:1] * 2),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
