"""Multipliers whose registers load in every cycle, as in ECP5's blocks (hardware/synthesis/ecp5_multipliers.v)."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from amaranth import Const

from tilewright.rtl.arithmetic.product import Product
from tilewright.rtl.array.lane import Multipliers
from tilewright.rtl.array.pair_multipliers import PairMultipliers

ALWAYS = {Multipliers: ("a_enable", "products_enable"), Product: ("enable", "product_enable"),
          PairMultipliers: ("operand_enable", "product_enable")}
"""Lines that each module's Verilog for ECP5 leaves out."""


@contextmanager
def always_enabled() -> Iterator[set[type]]:
    """Elaborate the modules with these enables always on; the set gets those that are elaborated."""
    elaborated: set[type] = set()

    def changed(module: type, names: tuple[str, ...]):
        gated = module.elaborate

        def elaborate(self, platform):
            elaborated.add(module)
            kept = {name: getattr(self, name) for name in names}
            for name in names:
                setattr(self, name, Const(1))
            m = gated(self, platform)
            for name, enable in kept.items():
                setattr(self, name, enable)
            return m

        return elaborate

    with pytest.MonkeyPatch.context() as patch:
        for module, names in ALWAYS.items():
            patch.setattr(module, "elaborate", changed(module, names))
        yield elaborated
