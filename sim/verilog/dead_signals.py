"""Signals that nothing reads are left out, so that Verilator need not carry them to where it finds that out."""

import re
from collections import Counter

__all__ = ["without_dead_signals"]

_MODULE = re.compile(r"^module .*?^endmodule\n", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"\\\S+|(?<![\w$'\\])[A-Za-z_]\w*")
_DECLARED = re.compile(r"^  (?:wire|reg)(?: signed)? (?:\[\d+:\d+\] )?(\\\S+|\w+) ?(?: = [^;]*)?;\n", re.MULTILINE)
_ASSIGNED = re.compile(r"^  assign (\\\S+|\w+) (?: ?\[[^\]]*\])? ?= [^;]*;\n", re.MULTILINE)


def without_dead_signals(text: str) -> str:
    """Return Verilog of `elaborate.verilog_of` without signals that are declared and assigned, and no more.

    Amaranth names each field of a structure, whether it is used or not: half of all signals. Ports stay.
    """
    return _MODULE.sub(lambda module: _cleaned(module[0]), text)


def _cleaned(module: str) -> str:
    while True:
        uses, assigned = Counter(_NAME.findall(module)), Counter(_ASSIGNED.findall(module))
        dead = {name for name in _DECLARED.findall(module) if uses[name] == 1 + assigned[name]}
        if not dead:
            return module
        module = _without(dead, _ASSIGNED, _without(dead, _DECLARED, module))


def _without(dead: set[str], line: re.Pattern[str], module: str) -> str:
    return line.sub(lambda found: "" if found[1] in dead else found[0], module)
