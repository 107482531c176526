"""A word that is read while it is written: inverted, or anything, for checks that nothing uses it.

Synthesis may then leave out the logic that keeps the old value there (`hardware.synthesis.targets`).
"""

import re
from collections.abc import Callable

__all__ = ["clocked_memories", "with_inverted_collisions", "with_unknown_collisions"]

_MODULE = re.compile(r"^module (\S+) ?\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_READ = re.compile(r"^(?P<before> +\S+ <= )(?P<memory>\w+|\\\S+ )\[(?P<address>[^\]]+(?:\[[^\]]*\])?)\];$",
                   re.MULTILINE)
_WRITE = r"^    if \((?P<enable>.+)\)\n      {memory}\[(?P<address>.+?)\](?:\[[\d:]+\])? <= .*;$"
_MEMORY = r"^  reg \[(?P<high>\d+):0\] {memory} ?\[\d+:\d+\];$"


def clocked_memories(text: str) -> list[str]:
    """Return the memories with a clocked read port in Verilog of `verilog_of`, as module and name."""
    return [f"{module[1].strip(chr(92))}.{read['memory'].strip()}" for module in _MODULE.finditer(text)
            for read in _READ.finditer(module[0]) if _width(module[0], read["memory"]) is not None]


def with_inverted_collisions(text: str) -> str:
    """Return Verilog of `verilog_of` whose clocked memories give the complement of a word that is written meanwhile."""
    return _MODULE.sub(lambda module: _READ.sub(
        lambda read: _changed(module[0], read, lambda width, collides: f"{{{width}{{{collides}}}}}"), module[0]), text)


def with_unknown_collisions(text: str) -> str:
    """Return Verilog of `verilog_of` whose clocked memories give any word for one that is written meanwhile.

    Each of them gets an instance of a module ``anything``, whose output has any value in each cycle.
    """
    return _MODULE.sub(lambda module: _unknown(module[0]), text)


def _unknown(module: str) -> str:
    sources: list[str] = []

    def any_word(width: int, collides: str) -> str:
        name = f"any_word_{len(sources)}"
        sources.append(f"  wire [{width - 1}:0] {name};\n  anything #(.WIDTH({width})) {name}_source(.o({name}));\n")
        return f"({{{width}{{{collides}}}}} & {name})"

    changed = _READ.sub(lambda read: _changed(module, read, any_word), module)
    head, rest = changed.split(";\n", 1)
    return f"{head};\n{''.join(sources)}{rest}"


def _changed(module: str, read: re.Match[str], change: Callable[[int, str], str]) -> str:
    """Return a read of a memory exclusive or what ``change`` makes of its width and of whether there is a collision."""
    width = _width(module, read["memory"])
    if width is None:
        return read[0]
    writes = list(re.finditer(_WRITE.format(memory=re.escape(read["memory"])), module, re.MULTILINE))
    if not writes:
        raise ValueError(f"Memory {read['memory'].strip()!r} must be written in a form that is known, and is not")
    collides = " || ".join(f"(({write['enable']}) && ({write['address']}) == ({read['address']}))" for write in writes)
    return f"{read['before']}{read['memory']}[{read['address']}] ^ {change(width, collides)};"


def _width(module: str, memory: str) -> int | None:
    """Return the bits of a memory's word, or None if there is no such memory."""
    found = re.search(_MEMORY.format(memory=re.escape(memory.strip())), module, re.MULTILINE)
    return None if found is None else int(found["high"]) + 1
