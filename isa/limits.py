"""Largest operands that the instructions can hold, computed from the widths of their fields.

An operand that several instructions carry, such as a number of rows, is limited by the narrowest of its fields.
"""

from tilewright.isa.encoding import BY_MNEMONIC, Field

__all__ = [
    "BUFFER_ADDRESSES", "MAX_BLOCK_CHANNELS", "MAX_BURST_WORDS", "MAX_CHUNKS", "MAX_CHUNK_BYTES", "MAX_COLUMNS",
    "MAX_KERNEL", "MAX_PADDING", "MAX_PAIR_WORDS", "MAX_PIXEL_BYTES", "MAX_ROWS", "MAX_ROWS_AT_ONCE", "MAX_ROW_LENGTH",
    "MAX_RUNS", "MAX_WINDOW", "MAX_WINDOW_STRIDE", "WEIGHT_BUS_WORDS", "largest",
]


def largest(*fields: tuple[str, str, str]) -> int:
    """Return the largest value that every one of the fields (mnemonic, variant, name) can hold.

    Raises
    ------
    KeyError
        If a variant has no such field.
    """
    return min(_fields(mnemonic, variant)[name].range[-1] for mnemonic, variant, name in fields)


def _fields(mnemonic: str, variant: str) -> dict[str, Field]:
    return {field.name: field for field in BY_MNEMONIC[mnemonic].variant(variant).fields}


BUFFER_ADDRESSES = largest(("conv", "run", "base"), ("conv", "set_tile_step", "y_step")) + 1
"""Addresses of the activation buffer's bytes, modulo which steps count."""

MAX_ROWS = largest(("lda", "linear", "rows"), ("lda", "blocked", "rows"), ("lda", "residual", "rows"),
                   ("conv", "run", "tiles_y"), ("act", "run", "rows"), ("pool", "window", "rows"),
                   ("sta", "memory", "rows"))
"""Rows of a tile, of its input or its output."""

MAX_COLUMNS = largest(("conv", "set_shape", "tiles_x"), ("act", "set_output", "width"), ("pool", "window", "width"))
"""Columns of a tile's sums."""

MAX_PIXEL_BYTES = largest(("lda", "set_layout", "channels"))
"""Bytes of a pixel, so input channels, where a load has to know them."""

MAX_BLOCK_CHANNELS = largest(("act", "run", "channels"), ("act", "set_output", "pixel_step"))
"""Output channels of one act command."""

MAX_RUNS = largest(("conv", "set_shape", "runs"))
"""Runs of 16 bytes, or input channels of conv23, in one mac command."""

MAX_KERNEL = largest(("conv", "set_shape", "kernel_x"), ("conv", "set_shape", "kernel_y"))
"""Kernel rows or columns."""

MAX_PADDING = largest(("lda", "set_layout", "left"), ("lda", "set_layout", "right"))
"""Padding pixels on one side of a row."""

MAX_PAIR_WORDS = largest(("conv", "set_kernel_step", "pair_words"))
"""Words of 16 bytes between the two halves of a paired run."""

MAX_WINDOW = largest(("pool", "window", "kernel_x"), ("pool", "window", "kernel_y"),
                     ("pool", "window", "left"), ("pool", "window", "top"))
"""Rows, columns or padding of a max-pooling window."""

MAX_WINDOW_STRIDE = largest(("pool", "window", "stride_x"), ("pool", "window", "stride_y"))
"""Stride of a max-pooling window."""

MAX_ROW_LENGTH = largest(("act", "rows", "length"))
"""Elements of a row that act.rows normalises."""

MAX_ROWS_AT_ONCE = largest(("act", "rows", "rows"))
"""Rows that one act.rows normalises."""

MAX_CHUNK_BYTES = largest(("lda", "set_row", "chunk_bytes"), ("sta", "set_row", "chunk_bytes"))
"""Bytes of one run of a loaded or stored row."""

MAX_CHUNKS = largest(("lda", "set_row", "chunks"), ("sta", "set_row", "chunks"))
"""Runs of a loaded or stored row."""

MAX_BURST_WORDS = largest(("ldw", "main", "words"), ("ldw", "ninths", "words"), ("ldw", "parameters", "words"),
                          ("ldw", "table", "words"))
"""Bus words that one ldw command loads."""

WEIGHT_BUS_WORDS = largest(("ldw", "main", "base")) + 1
"""Bus words of a weight memory that ldw can address."""
