"""Counts of the instructions: operands from which hardware counts down, and which must not be zero."""

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.encoding import BY_MNEMONIC

__all__ = ["COUNTS", "zero_count"]

_TILES = ("tiles_y", "groups")
_ROW = ("chunk_bytes", "chunks")

COUNTS: dict[tuple[str, str], tuple[str, ...]] = {
    **{("lda", name): ("rows",) for name in ("linear", "blocked", "residual", "fill_linear", "fill_blocked")},
    ("lda", "set_row"): _ROW,
    **{("ldw", name): ("words",) for name in ("main", "ninths", "parameters", "table", "set_coded")},
    **{("ldw", name): ("steps",) for name in ("coded_main", "coded_ninths")},
    ("conv23", "run"): _TILES,
    ("conv23", "run_without_reuse"): _TILES,
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


def zero_count(command: EncodedCommand) -> int | None:
    """Return the fault address of a command with a count of zero, funct3 x 8 + variant; None if it has none."""
    operands = command.operands
    if all(operands[name] for name in COUNTS.get((command.instruction.mnemonic, command.variant.name), ())):
        return None
    return command.funct3 << 3 | command.variant.code
