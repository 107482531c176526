"""Commands by name, for waveforms: an enumeration in SystemVerilog, and which unit takes which."""

from collections.abc import Iterator

from tilewright.isa.encoding import KNOWN, Variant

__all__ = ["IDLE_CODE", "command_kinds", "command_package"]

IDLE_CODE = 63
"""Shown while a unit works on no command: ``kIdle`` in sim/verilator/harness/working.h."""

_LETTERS = {"load": "l", "mac": "a", "post": "p", "store": "s", "host": "."}
_COPIES = ("linear", "blocked")


def command_package() -> str:
    """Return the package ``shown_commands`` with the type ``command_t``: commands by their names in the manual."""
    rows = [f"    \\{name} = 6'd{code},\n" for code, name, _ in _codes()]
    return ("package shown_commands;\n  typedef enum logic [5:0] {\n" + "".join(rows)
            + f"    idle = 6'd{IDLE_CODE}\n  }} command_t;\nendpackage\n")


def command_kinds() -> str:
    """Return a letter for each code of a command, as sim/verilator/harness/working.h reads them."""
    letters = ["."] * (IDLE_CODE + 1)
    for code, name, variant in _codes():
        letter = "c" if variant.unit == "store" and variant.name in _COPIES else _LETTERS[variant.unit]
        sets = variant.name.startswith("set_") or name == "pool.window"
        letters[code] = letter.upper() if sets else letter
    return "".join(letters)


def _codes() -> Iterator[tuple[int, str, Variant]]:
    """Yield funct3 and variant as one number, name and variant of each command."""
    for instruction in KNOWN.values():
        for variant in instruction.variants:
            yield instruction.funct3 << 3 | variant.code, f"{instruction.mnemonic}.{variant.name}", variant
