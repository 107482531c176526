"""The code of weights, read off its description: a block by hand, and streams that are cut off."""

import random

from tilewright.isa.coded.weight_code import WeightCode, decode_weights
from tilewright.isa.machine import preset

NANO = WeightCode.of(preset("nano"))    # two lanes, bus words of 8 nibbles


def test_a_block_by_hand():
    # Widths 0, 1, 3, 8, and for both steps lane 0 with width 3 (choice 2), lane 1 with width 1 (choice 1).
    choices = 0b0110 | 0b0110 << 4 | 0x8310 << 16
    # u = 0, 1, 2, 3 and 7, 0, 0, 4: planes 0b1010, 0b1100, 0 and 0b0001, 0b0001, 0b1001.
    lane_0 = 0xA | 0xC << 4 | 0 << 8 | 0x1 << 12 | 0x1 << 16 | 0x9 << 20
    lane_1 = 0b0101 | 0b1000 << 4
    stream = b"".join(word.to_bytes(4, "little") for word in (choices, lane_0, lane_1))
    decoded = decode_weights(NANO, stream, 2)
    assert decoded.data.tolist() == [0, -1, 1, -2, -1, 0, -1, 0, -4, 0, 0, 2, 0, 0, 0, -1]
    # The word of choices, the two of the first step, and one that the second takes for what may come: there is none.
    assert decoded.cycles == 1 + 2 + 1


def test_a_stream_that_ends_early_goes_on_in_zeros_and_one_that_is_too_long_is_cut_off():
    rng = random.Random(0)
    stream = rng.randbytes(40)
    whole = decode_weights(NANO, stream + bytes(4000), 30)
    assert decode_weights(NANO, stream, 30).data.tolist() == whole.data.tolist()
    assert decode_weights(NANO, stream + rng.randbytes(4000), 2).data.tolist() == whole.data.tolist()[:16]


def test_a_width_above_eight_counts_as_eight():
    choices, rest = bytes([0xE4, 0xE4]), random.Random(1).randbytes(60)
    assert decode_weights(NANO, choices + b"\xff\xff" + rest, 4).data.tolist() == \
        decode_weights(NANO, choices + b"\x88\x88" + rest, 4).data.tolist()
