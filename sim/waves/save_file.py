"""Save file for GTKWave: the commands at work on top, and the handshakes of each unit in a group."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from tilewright.sim.waves.fst_file import Variable
from tilewright.sim.waves.scopes import SCOPES, TOP

__all__ = ["save_text"]

_COMMANDS = ("layer", "core_command", "load_command", "array_command", "post_command", "store_command")
"""From top to bottom as data pass."""

_USEFUL = re.compile(r"busy|state|idle|fault|waits|tile_slots"
                     r"|(commands|read_request|read_data|write_request|write_data|sums_request)__(valid|ready)"
                     r"|\w+_(available|take|signal)|(activation|result|weight|memory)_\w+_bytes")
"""Of a unit's own signals, those that tell what it does and what it waits for."""

_CORE = ("instr_req", "instr_addr", "data_req", "data_addr", "pc", "retired", "asleep")

# Flags of a row in GTKWave's files.
_BIT, _HEX, _DECIMAL, _NAMES = 0x28, 0x22, 0x24, 0x100000028
_BEGIN, _END = 0x800200, 0x1000200


def save_text(wave: Path, variables: Iterable[Variable]) -> str:
    """Return the save file for the waveform ``wave``, which has these signals."""
    known = {each.name: each for each in variables}
    lines = [f'[dumpfile] "{wave.resolve()}"', "[timestart] 0", f"[treeopen] {TOP}."]
    lines += _rows(known, (f"{TOP}.{name}" for name in _COMMANDS))
    for name, scope in SCOPES.items():
        found = [full for module in scope.modules for full in known
                 if full.rpartition(".")[0] == module and _USEFUL.fullmatch(full.rpartition(".")[2])]
        if name == "core":
            found = [f"{TOP}.{each}" for each in _CORE]
        if name != "all" and found:
            lines += [f"@{_BEGIN:x}", f"-{name}", *_rows(known, found), f"@{_END:x}", f"-{name}"]
    return "\n".join(lines) + "\n"


def _rows(known: dict[str, Variable], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if (each := known.get(name)) is None:
            continue
        flags = _NAMES if each.named else _DECIMAL if name == f"{TOP}.layer" else _HEX if each.bits else _BIT
        yield f"@{flags:x}"
        yield name + each.bits
