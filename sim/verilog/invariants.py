"""Invariants of the coprocessor in every cycle, as assertions in its Verilog, for simulators that check them."""

import re
from collections.abc import Iterator

__all__ = ["with_invariants"]

_MODULE = re.compile(r"^module (\S+) ?\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_DECLARED = re.compile(r"^  (?:input|output|wire|reg) (?:\[[^\]]*\] )?(\w+)\b", re.MULTILINE)
_OUTPUT = re.compile(r"^  output (?:\[[^\]]*\] )?(\w+);$", re.MULTILINE)
_STORAGE = re.compile(r"^  reg \[[^\]]*\] storage \[", re.MULTILINE)


def with_invariants(text: str) -> str:
    """Return Verilog of `verilog_of` with assertions; a module is recognised by its signals.

    Whoever writes into a queue without looking whether there is room must find room, and whoever reads without looking
    must find something: a queue whose ``w_rdy`` or ``r_rdy`` goes nowhere. No semaphore loses an event; a take of one
    that is zero does nothing, by design.
    """
    return _MODULE.sub(lambda module: _checked(module[0], module[1].strip("\\")), text)


def _checked(module: str, name: str) -> str:
    lines = "".join(f'  always @(posedge clk) if (!rst) assert ({condition}) else $error("{what} in {name}");\n'
                    for condition, what in _invariants(module))
    return f"{module.removesuffix('endmodule')}{lines}endmodule"


def _invariants(module: str) -> Iterator[tuple[str, str]]:
    """Yield conditions, and what is wrong without them."""
    signals, outputs = set(_DECLARED.findall(module)), set(_OUTPUT.findall(module))
    if _STORAGE.search(module) and {"clk", "rst", "w_en", "w_rdy", "r_en", "r_rdy"} <= signals:
        if "w_rdy" not in outputs:
            yield "!w_en || w_rdy", "an entry was lost"
        if "r_rdy" not in outputs:
            yield "!r_en || r_rdy", "an entry was made up"
    if {"clk", "rst", "overflow", "overflow_index", "act_ready_following"} <= signals:
        yield "!overflow", "an event was lost"
