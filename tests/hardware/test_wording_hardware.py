"""Errors of hardware/, word by word."""

from pathlib import Path

import pytest

from tests.support.wording import raised_by
from tilewright.hardware.board.deployment import answer_of
from tilewright.hardware.package.package import write_verilog
from tilewright.isa.machine import preset

SENTENCES = {
    "ToolError: Board must answer with a class, not 'error the frame ends after 3 of its bytes'":
        lambda: answer_of("error the frame ends after 3 of its bytes"),
    "InputError: Option --with-core must be given with --bus axi4, which its system has, not 'wishbone'; without it, "
    "--bus wishbone writes the adapter":
        lambda: write_verilog(preset("nano"), Path("/none"), bus="wishbone", with_core=True),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
