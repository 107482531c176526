"""Units whose signals a waveform can show, by name, and where they are in the simulator."""

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["DEFAULT_SCOPE", "SCOPES", "TOP", "Scope", "modules_of"]

TOP = "TOP.simulated_soc"
"""The simulated system; its own signals, among them the commands at work, are in every waveform."""

_SOC = f"{TOP}.soc"
_INSIDE = f"{_SOC}.coprocessor.coprocessor"
_ALL_LEVELS = 99


@dataclass(frozen=True, slots=True)
class Scope:
    """Modules that are shown together, with all that is in them; ``about`` says what they do."""

    modules: tuple[str, ...]
    about: str


SCOPES = {
    "overview": Scope((), "of each unit its own signals, without those of the modules in it"),
    "core": Scope((f"{_SOC}.host",), "the host core"),
    "port": Scope((f"{_SOC}.coprocessor.adapter", f"{_INSIDE}.dispatcher", f"{_INSIDE}.semaphores",
                   f"{_INSIDE}.control"), "command port, queues, semaphores, faults"),
    "load": Scope((f"{_INSIDE}.load",), "the load unit"),
    "array": Scope((f"{_INSIDE}.mac",), "the array, with its buffers"),
    "post": Scope((f"{_INSIDE}.post",), "post-processing, with the result buffer"),
    "store": Scope((f"{_INSIDE}.store",), "the store unit"),
    "bus": Scope((f"{_INSIDE}.axi", f"{_INSIDE}.read_check", f"{_INSIDE}.write_check"),
                 "the bus master and its windows"),
    "counters": Scope((f"{_INSIDE}.counters",), "the performance counters"),
    "all": Scope((TOP,), "everything"),
}
"""By the names that ``--wave-scope`` takes."""

DEFAULT_SCOPE = ("overview",)
"""Scope of a waveform for which none was asked."""

_UNITS = ("port", "load", "array", "post", "store", "bus")


def modules_of(scope: Sequence[str]) -> list[tuple[int, str]]:
    """Return the modules that waveforms of these names show, and of each how many levels of modules below it."""
    found = [(1, TOP)]
    for name in scope:
        if name == "overview":
            found += [(1, module) for unit in _UNITS for module in SCOPES[unit].modules]
            found.append((1, f"{_INSIDE}.mac.sequencer"))
        found += [(_ALL_LEVELS, module) for module in SCOPES[name].modules]
    return found
