"""Logic that the tables of a machine do not include: an extension's, and the curves behind requantised words.

A product of a stage or of a curve costs what one of requantisation does, by its size: of the register toggles of
post-processing that come with a value, whose price holds the logic behind them, a share for each partial product of its
24 by 24 bits. The energy of a multiplier grows with the product of its widths; by this rule it may be half or twice as
much.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilewright.isa.extension import ExtendedMachine, stage_of
from tilewright.isa.machine import Machine
from tilewright.isa.words.curve_fields import CURVATURE, PIECE, SLOPE
from tilewright.sim.verilog.energy_blocks import modules

__all__ = ["CURVE_PRODUCTS", "CURVE_TOGGLES", "PARTIAL_PRODUCT_TOGGLES", "ExtensionLogic", "extension_logic",
           "product_toggles"]

PARTIAL_PRODUCT_TOGGLES = 100.1 / (24 * 24)
"""Toggles of post-processing that a partial product is worth: a requantised value's in energy/activity.toml, over
the bits of its multiplier (rtl/arithmetic/requantise.py)."""

CURVE_PRODUCTS = (CURVATURE + SLOPE) * (PIECE.bit_length() - 1)
"""Partial products of a word that follows a curve: two multipliers take its place in a piece."""

CURVE_TOGGLES = 152
"""Register bits that such a word changes on its way along the curve; tests/energy/test_added_logic.py counts them."""

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


def product_toggles(counters: Mapping[str, int], machine: Machine, curved: int = 0) -> int:
    """Return how many register toggles of post-processing the products of a machine's stage and curves are worth.

    A stage makes its own of every value that ``act`` maps, those of a value table too, as they pass it as well. Curves
    make theirs of ``curved`` words: a word's two bytes leave one behind the other, and the multipliers rest in between.
    """
    products = float(curved * CURVE_PRODUCTS)
    if stage_of(machine) is not None and isinstance(machine, ExtendedMachine):
        products += counters["table_read"] / machine.post_lanes * extension_logic(machine).partial_products
    return round(products * PARTIAL_PRODUCT_TOGGLES)
