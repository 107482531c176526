"""Wide registers in parts, so that a simulator need not cut a field of an array out of words of 32 bits."""

import re

__all__ = ["with_split_registers"]

_WORD = 64
"""Bits of the largest number that a simulator does not keep as an array of words."""

_WIDE = re.compile(r"^(  reg(?: signed)? \[(\d+):0\] (?:\\\S+ |\w+))((?: ?= [^;]*)?;)$", re.MULTILINE)


def with_split_registers(text: str) -> str:
    """Return Verilog of `elaborate.verilog_of` in which Verilator takes registers of more than 64 bits apart.

    They become a variable for each range of bits that is used as one. The values stay the same; a waveform shows the
    parts. Memories, which have a second range, stay as they are.
    """
    return _WIDE.sub(lambda found: f"{found[1]} /*verilator split_var*/{found[3]}" if int(found[2]) >= _WORD
                     else found[0], text)
