"""Logic of an extension that the tables of its machine do not include: flip-flops and multipliers in the gateware.

A product of a stage costs what one of requantisation does, by its size: of the register toggles of post-processing that
come with a value, whose price holds the logic behind them, a share for each partial product of its 24 by 24 bits. The
energy of a multiplier grows with the product of its widths; by this rule it may be half or twice as much.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilewright.isa.extension import ExtendedMachine, stage_of
from tilewright.isa.machine import Machine
from tilewright.sim.verilog.energy_blocks import modules

__all__ = ["PARTIAL_PRODUCT_TOGGLES", "ExtensionLogic", "extension_logic", "product_toggles"]

PARTIAL_PRODUCT_TOGGLES = 100.1 / (24 * 24)
"""Toggles of post-processing that a partial product is worth: a requantised value's in energy/activity.toml, over
the bits of its multiplier (rtl/arithmetic/requantise.py)."""

_MULTIPLIER = re.compile(r"^  cell \$mul \S+\n(?:    .*\n)*?    parameter \\A_WIDTH (\d+)\n"
                         r"    parameter \\B_WIDTH (\d+)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ExtensionLogic:
    """Size of an extension, with what Tilewright puts around its component.

    Attributes
    ----------
    registers : int
        Flip-flops, in bits.
    partial_products : int
        Bits of one operand times bits of the other, summed over all multipliers.
    """

    registers: int
    partial_products: int


@lru_cache(maxsize=256)
def extension_logic(machine: ExtendedMachine) -> ExtensionLogic:
    """Return the size of the extension of ``machine``, as it is elaborated."""
    # Here, because a machine without an extension needs no gateware.
    from tilewright.sim.verilog.elaborate import extension_rtlil

    found = list(modules(extension_rtlil(machine)))
    return ExtensionLogic(sum(register.width for module in found for register in module.registers),
                          sum(int(a) * int(b) for module in found for a, b in _MULTIPLIER.findall(module.text)))


def product_toggles(counters: Mapping[str, int], machine: Machine) -> int:
    """Return how many register toggles of post-processing the products of a machine's stage are worth.

    It makes its own of every value that ``act`` maps, those of a value table too, as they pass it as well.
    """
    if stage_of(machine) is None or not isinstance(machine, ExtendedMachine):
        return 0
    vectors = counters["table_read"] / machine.post_lanes
    return round(vectors * extension_logic(machine).partial_products * PARTIAL_PRODUCT_TOGGLES)
