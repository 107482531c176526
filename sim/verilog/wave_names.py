"""Names in waveforms: Verilog in which what has no name of its own in the gateware is hidden from the simulator.

Yosys and Amaranth give names with a dollar sign to what has none (``$17``, ``$auto$…``), and where a module has a name
twice, to the second (``busy$94``).
"""

import re

__all__ = ["HIDDEN", "with_wave_names"]

HIDDEN = "_hidden_"
"""Begins the names of what is hidden: Verilator leaves out what begins with an underscore."""

_ESCAPED = re.compile(r"\\(\S*\$\S*)(?=\s)")
_DECLARED = re.compile(r"^\s*(?:input|output|inout|wire|reg)\s+(reg\s+)?(?:signed\s+)?(?:\[[^\]]*\]\s*)?\\(\S*\$\S*)\s",
                       re.MULTILINE)
_REGISTER = re.compile(r"^\s*reg\s+(?:signed\s+)?(?:\[[^\]]*\]\s*)?\\(\S*\$\S*)\s", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z_][\w$]*")


def with_wave_names(text: str) -> str:
    """Return the same design, Verilog as Yosys writes it, with no dollar sign in a name that a waveform shows.

    Hidden are signals without a name, and wires that have their name from a neighbour, which shows it. A register whose
    name the module has twice keeps it, with a number.
    """
    wires = {name for _, name in _DECLARED.findall(text)}
    registers = set(_REGISTER.findall(text))
    taken = set(_PLAIN.findall(text))
    names: dict[str, str] = {}
    for name in dict.fromkeys(_ESCAPED.findall(text)):
        if name.startswith("$") or (name in wires and name not in registers):
            wanted = f"{HIDDEN}{len(names)}"
        else:
            wanted = name.replace("$", "_")
        while wanted in taken:
            wanted += "_"
        taken.add(wanted)
        # What has a dot or a bracket stays escaped.
        names[name] = wanted if _PLAIN.fullmatch(wanted) else f"\\{wanted}"
    return _ESCAPED.sub(lambda found: names[found[1]], text)
