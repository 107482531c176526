"""Flip-flops of each block of a machine: committed for the presets, predicted for other machines.

``python -m tilewright.energy.registers`` writes the committed table, energy/registers.toml, again; a test holds it to
the hardware. The cores' are those of ``read_slang``, ``proc``, ``flatten`` and ``opt`` of Yosys 0.70, without CV-X-IF.
"""

import tomllib
from dataclasses import fields, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from tilewright.energy.added_logic import extension_logic
from tilewright.energy.register_fit import predicted_registers
from tilewright.energy.unit_registers import (
    channel_kernel_registers,
    decoder_registers,
    four_patch_registers,
    integer_registers,
    row_unit_registers,
    saved_registers,
    word_registers,
)
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE
from tilewright.isa.extension import ExtendedMachine, unit_of
from tilewright.isa.machine import EXTRA_UNITS, PRESETS, UNITS, Machine
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS, count_registers

__all__ = ["CORE_REGISTERS", "count_fresh", "main", "registers_of"]

_TABLE = Path(__file__).with_name("registers.toml")
_FITTED_ARRAYS = ("plain", "winograd", "inner", "winograd_inner")

CORE_REGISTERS = {HOST_CORE: 2388, XPULP_CORE: 2479}
"""Flip-flops of the cores as simulated, register files included; of CV32E40P's performance counters one of 32."""

_HEAD = """\
# Flip-flops of each block of the presets, in bits, as elaborated; made by python -m tilewright.energy.registers.
"""


def registers_of(machine: Machine) -> dict[str, int]:
    """Return the flip-flops of each block of `sim.verilog.energy_blocks.ENERGY_BLOCKS`, in bits.

    Those of a machine like no preset are predicted, as counting them takes an elaboration of up to two minutes. They
    are counted if its array is of a kind that was never fitted. Those of an extension are counted too: a stage's belong
    to post-processing, a unit's to the sequencer.
    """
    if isinstance(machine, ExtendedMachine):
        bare = registers_of(Machine(**{each.name: getattr(machine, each.name) for each in fields(Machine)}))
        block = "sequencer" if unit_of(machine) is not None else "post_processing"
        return bare | {block: bare[block] + extension_logic(machine).registers}
    if machine.row_unit:    # which no preset and no machine of a fit has
        bare = registers_of(replace(machine, row_unit=False))
        return bare | {"post_processing": bare["post_processing"] + row_unit_registers(machine)}
    for unit, added in (("coded_weights", decoder_registers), ("four_patches", four_patch_registers),
                        ("channel_kernels", channel_kernel_registers), ("integer_requantise", integer_registers),
                        ("wide_words", word_registers)):
        if getattr(machine, unit):
            without: dict[str, Any] = {unit: False}
            if unit == "integer_requantise":
                without["float_requantise"] = True
            bare, more = registers_of(replace(machine, **without)), added(machine)
            return {block: count + more.get(block, 0) for block, count in bare.items()}
    if machine.array not in _FITTED_ARRAYS:
        return dict(_counted(replace(machine, name="")))
    if (counted := _committed(machine)) is not None:
        return dict(counted)
    whole = _whole(machine)
    registers = dict(_committed(whole) or predicted_registers(whole))
    saved = saved_registers(machine, registers)
    return {block: count - saved[block] for block, count in registers.items()}


def _committed(machine: Machine) -> dict[str, int] | None:
    return next((_table()[name] for name, each in PRESETS.items() if machine.same_as(each)), None)


def count_fresh(machine: Machine) -> dict[str, int]:
    """Return the same from the hardware as it is now."""
    # Here, because a run of a preset needs no gateware.
    from tilewright.sim.verilog.elaborate import coprocessor_rtlil

    return count_registers(coprocessor_rtlil(machine))


def _whole(machine: Machine) -> Machine:
    """Return the machine with all units, the array of the presets, and as many clusters as that needs."""
    units: dict[str, Any] = dict.fromkeys(UNITS, True) | dict.fromkeys(EXTRA_UNITS, False)
    return replace(machine, array="winograd", clusters=max(machine.clusters, machine.lanes // machine.tiles), **units)


@lru_cache(maxsize=256)
def _counted(machine: Machine) -> dict[str, int]:
    return count_fresh(machine)


@cache
def _table() -> dict[str, dict[str, int]]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def main() -> None:
    """Write the committed table."""
    sections = []
    for name, machine in PRESETS.items():
        counts = count_fresh(machine)
        sections.append("\n".join([f"[{name}]", *(f"{block} = {counts[block]}" for block in ENERGY_BLOCKS)]))
    _TABLE.write_text(_HEAD + "\n" + "\n\n".join(sections) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
