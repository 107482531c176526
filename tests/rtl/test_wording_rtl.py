"""Errors of rtl/, word by word."""

import pytest

from tests.support.wording import raised_by
from tilewright.isa.machine import preset
from tilewright.rtl.bus.axi import BurstSplitter
from tilewright.rtl.port.window_check import WindowCheck
from tilewright.rtl.post.post import PostUnit
from tilewright.rtl.stream.commands import flag
from tilewright.rtl.stream.queues import FlaggedFIFO

SENTENCES = {
    "ValueError: AXI max_burst must be a power of two in 2..256, not 48": lambda: BurstSplitter(8, 48),
    "ValueError: Depth of a queue must be a power of two from 2 on, not 3": lambda: FlaggedFIFO(width=8, depth=3),
    "ValueError: WindowCheck data_bytes must be one of (4, 8, 16, 32, 64), not 6":
        lambda: WindowCheck(6, is_write=False),
    "ValueError: WindowCheck windows must be a positive integer, not 0":
        lambda: WindowCheck(8, is_write=False, windows=0),
    "ValueError: PostUnit sums_latency must be at least 2, not 1": lambda: PostUnit(preset("nano"), sums_latency=1),
    "EncodingError: lda.linear must have the flag 'wait_out_free', and lacks it":
        lambda: flag("lda", "linear", "wait_out_free"),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
