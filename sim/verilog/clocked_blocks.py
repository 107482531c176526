"""Registers as one clocked block each, so that a simulator does nothing for those that hold their value."""

import re
from collections import Counter

__all__ = ["with_clocked_blocks"]

_MODULE = re.compile(r"^module .*?^endmodule\n", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^  always @\* begin\n((?:    .*\n)+)  end\n", re.MULTILINE)
_REGISTER = re.compile(r"^  always @\(posedge clk\)\n    (\\\S+ |\w+) <= (\\\S+) ;\n", re.MULTILINE)
_NAME = re.compile(r"\\\S+|(?<![\w$'\\])[A-Za-z_]\w*")
_DECLARED = re.compile(r"^  (?:reg|wire)(?: signed)? (\[\d+:\d+\] )?(\\\S+|\w+) ?(?: = [^;]*)?;\n", re.MULTILINE)
_TRIGGER = re.compile(r"^    if \(\\\$auto\$\S+ \) begin end\n")
_ASSIGNED = re.compile(r"^ +(\\\S+) (?: ?\[[^\]]*\] ?)? ?= ", re.MULTILINE)


def with_clocked_blocks(text: str) -> str:
    """Return Verilog of `elaborate.verilog_of` in which registers load where their next value was computed.

    Yosys writes a register as ``always @(posedge clk) q <= next`` and its next value as a block of its own, which
    begins with ``next = q``. Of these a simulator computes and copies every register in every cycle. Where ``next`` is
    used for nothing else, both become ``always @(posedge clk) if (enable) q <= …``: the same values in every cycle.
    """
    return _MODULE.sub(lambda module: _rewritten(module[0]), text)


def _rewritten(module: str) -> str:
    registers = {next_value: name.strip() for name, next_value in _REGISTER.findall(module)}
    widths = {name: width for width, name in _DECLARED.findall(module)}
    uses = Counter(_NAME.findall(module))
    moved = set()

    def clocked(block: re.Match[str]) -> str:
        body = _TRIGGER.sub("", block[1])
        assigned = _ASSIGNED.findall(body)
        next_value = assigned[0] if assigned else ""
        register = registers.get(next_value)
        if (register is None or set(assigned) != {next_value}
                or uses[next_value] != len(assigned) + 2  # its declaration and the register
                or next_value not in widths or widths.get(register) != widths[next_value]):
            return block[0]
        moved.add(next_value)
        lines = [_clocked_line(line, next_value, f"{register} " if register[0] == "\\" else register)
                 for line in body.splitlines()]
        return "  always @(posedge clk) begin\n" + "".join(line + "\n" for line in lines if line) + "  end\n"

    module = _BLOCK.sub(clocked, module)
    return _REGISTER.sub(lambda block: "" if block[2] in moved else block[0], module)


def _clocked_line(line: str, next_value: str, register: str) -> str:
    """Return a line of the block with ``register`` in place of its next value; nothing for ``next = register``."""
    start = line.lstrip()
    if not start.startswith(f"{next_value} "):
        return line
    place, value = start[len(next_value):].split("=", 1)
    if not place.strip() and value.strip(" ;") == register.strip():
        return ""
    return f"{line[:len(line) - len(start)]}{register}{place.strip()} <={value}"
