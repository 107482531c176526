"""Counts of the instructions: operands from which hardware counts down, and what nobody can mean by them."""

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.encoding import BY_MNEMONIC
from tilewright.isa.machine import Machine

__all__ = ["COUNTS", "ROW_COMMANDS", "long_row_bit", "refused_count"]

_TILES = ("tiles_y", "groups")
_ROW = ("chunk_bytes", "chunks")

COUNTS: dict[tuple[str, str], tuple[str, ...]] = {
    **{("lda", name): ("rows",) for name in ("linear", "blocked", "residual", "fill_linear", "fill_blocked")},
    ("lda", "set_row"): _ROW,
    **{("ldw", name): ("words",) for name in ("main", "ninths", "parameters", "table", "set_coded")},
    **{("ldw", name): ("steps",) for name in ("coded_main", "coded_ninths")},
    ("conv23", "run"): _TILES,
    ("conv23", "run_without_reuse"): _TILES,
    ("conv23", "run_by_channel"): _TILES,
    ("conv23", "run_four_patches"): _TILES,
    ("conv", "run"): _TILES,
    ("conv", "set_shape"): ("tiles_x", "runs", "kernel_x", "kernel_y"),
    ("act", "run"): ("rows", "channels"),
    ("act", "rows"): ("length", "rows"),
    ("act", "set_output"): ("width",),
    ("pool", "sum"): _TILES,
    ("pool", "window"): ("kernel_x", "kernel_y", "stride_x", "stride_y", "width", "rows"),
    **{("sta", name): ("rows",) for name in ("memory", "linear", "blocked")},
    ("sta", "set_row"): _ROW,
}
"""Names of the operands by mnemonic and variant; a command with one of them at zero is a fault."""

for (_mnemonic, _name), _fields in COUNTS.items():
    assert set(_fields) <= {field.name for field in BY_MNEMONIC[_mnemonic].variant(_name).fields}


ROW_COMMANDS = tuple(command for command, fields in COUNTS.items() if fields == _ROW)
"""Mnemonic and variant of the commands that set a row, which begins or ends in a buffer."""


def long_row_bit(machine: Machine) -> int:
    """Return the sum of a bit of ``chunk_bytes`` and a bit of ``chunks``, both 1, from which on a row is too long.

    Hardware compares places of bits in place of a product: no row that the largest buffer holds is refused, and every
    row of four times its bytes is.
    """
    return max(machine.activation_bytes, machine.result_bytes).bit_length()


def refused_count(command: EncodedCommand, machine: Machine) -> int | None:
    """Return the fault address of a command that nobody can mean, funct3 x 8 + variant; None if it is none.

    It has a count of zero, or sets a row that is longer than any buffer.
    """
    operands, name = command.operands, (command.instruction.mnemonic, command.variant.name)
    counts = [operands[each] for each in COUNTS.get(name, ())]
    places = sum(count.bit_length() - 1 for count in counts)
    if not all(counts) or (name in ROW_COMMANDS and places >= long_row_bit(machine)):
        return command.funct3 << 3 | command.variant.code
    return None
