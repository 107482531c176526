"""The largest operands: computed from the table, and those that the encoder takes."""

import pytest

from tilewright.isa import limits
from tilewright.isa.assembler import command
from tilewright.isa.encoding import BY_MNEMONIC, EncodingError

OPERANDS = [("lda", "linear", "rows", limits.MAX_ROWS),
            ("conv", "set_shape", "tiles_x", limits.MAX_COLUMNS),
            ("lda", "set_layout", "channels", limits.MAX_PIXEL_BYTES),
            ("act", "run", "channels", limits.MAX_BLOCK_CHANNELS),
            ("conv", "set_shape", "runs", limits.MAX_RUNS),
            ("conv", "set_shape", "kernel_y", limits.MAX_KERNEL),
            ("lda", "set_layout", "left", limits.MAX_PADDING),
            ("conv", "set_kernel_step", "pair_words", limits.MAX_PAIR_WORDS),
            ("pool", "window", "kernel_x", limits.MAX_WINDOW),
            ("pool", "window", "stride_x", limits.MAX_WINDOW_STRIDE),
            ("sta", "set_row", "chunk_bytes", limits.MAX_CHUNK_BYTES),
            ("sta", "set_row", "chunks", limits.MAX_CHUNKS),
            ("ldw", "main", "words", limits.MAX_BURST_WORDS),
            ("ldw", "main", "base", limits.WEIGHT_BUS_WORDS - 1)]


@pytest.mark.parametrize(("mnemonic", "variant", "name", "largest"), OPERANDS,
                         ids=[".".join(operand[:3]) for operand in OPERANDS])
def test_the_largest_operand_can_be_encoded_and_one_more_cannot(mnemonic, variant, name, largest):
    zeros = {field.name: 0 for field in BY_MNEMONIC[mnemonic].variant(variant).fields}
    command(mnemonic, variant, **{**zeros, name: largest})
    with pytest.raises(EncodingError):
        command(mnemonic, variant, **{**zeros, name: largest + 1})


def test_an_operand_of_several_instructions_is_limited_by_the_narrowest():
    assert limits.largest(("conv", "set_shape", "runs"), ("lda", "linear", "rows")) == limits.MAX_ROWS


def test_an_unknown_field_is_refused():
    with pytest.raises(KeyError, match="colour"):
        limits.largest(("lda", "linear", "colour"))
