"""Multipliers whose registers hold nothing compute the same bits, under random delays of memory.

In ECP5's blocks (hardware/synthesis/ecp5_multipliers.v) data and products stand for one cycle. So the gateware must
take each in that cycle, though its own modules would hold it.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth import Const

from tests.end_to_end.test_random_layers import assert_exact
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.rtl.arithmetic.product import Product
from tilewright.rtl.array.lane import Multipliers
from tilewright.rtl.array.pair_multipliers import PairMultipliers
from tilewright.sim.verilog.elaborate import coprocessor_rtlil
from tilewright.tools.toolchain import cache_folder

ALWAYS = {Multipliers: ("a_enable", "products_enable"), Product: ("enable", "product_enable"),
          PairMultipliers: ("operand_enable", "product_enable")}
"""Lines that each module's Verilog for ECP5 leaves out."""

NANO = PRESETS["nano"]


@pytest.fixture
def without_enables(monkeypatch):
    """Elaborate the modules with these enables always on; list them. Their simulators have a cache of their own."""
    changed = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(cache_folder() / "without_enables" / changed))
    coprocessor_rtlil.cache_clear()
    elaborated = []

    def patch(module: type, names: tuple[str, ...]) -> None:
        gated = module.elaborate

        def elaborate(self, platform):
            elaborated.append(module)
            kept = {name: getattr(self, name) for name in names}
            for name in names:
                setattr(self, name, Const(1))
            m = gated(self, platform)
            for name, enable in kept.items():
                setattr(self, name, enable)
            return m

        monkeypatch.setattr(module, "elaborate", elaborate)

    for module, names in ALWAYS.items():
        patch(module, names)
    yield elaborated
    coprocessor_rtlil.cache_clear()


@pytest.mark.parametrize(("machine", "modules"), [
    pytest.param(replace(NANO, name="two paired lanes", lanes=2, array="winograd_inner"), {PairMultipliers, Product},
                 id="winograd_inner"),
    pytest.param(NANO, {Multipliers, Product}, id="winograd", marks=pytest.mark.slow),
    pytest.param(replace(NANO, name="two lanes of runs", lanes=2, array="inner"), {PairMultipliers, Product},
                 id="inner", marks=pytest.mark.slow)])
def test_products_are_taken_in_the_cycle_in_which_they_stand(machine, modules, without_enables, tmp_path):
    assert_exact(machine, 0, tmp_path, MemoryTiming(latency_cycles=55, bytes_per_cycle=2))
    coprocessor_rtlil(machine, watched=True)    # of a simulator that an earlier run has built
    assert set(without_enables) == modules
