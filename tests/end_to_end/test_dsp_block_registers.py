"""Multipliers whose registers hold nothing compute the same bits, under random delays of memory.

In ECP5's blocks (hardware/synthesis/ecp5_multipliers.v) data and products stand for one cycle. So the gateware must
take each in that cycle, though its own modules would hold it.
"""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.end_to_end.test_random_layers import assert_exact
from tests.support import always_enabled as always_enabled_module
from tests.support.always_enabled import always_enabled
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.rtl.arithmetic.product import Product
from tilewright.rtl.array.lane import Multipliers
from tilewright.rtl.array.pair_multipliers import PairMultipliers
from tilewright.sim.verilog.elaborate import coprocessor_rtlil
from tilewright.tools.toolchain import cache_folder

NANO = PRESETS["nano"]


@pytest.fixture
def without_enables(monkeypatch):
    """Elaborate modules with enables always on; give their set. Their simulators have a cache of their own."""
    changed = hashlib.sha256(Path(always_enabled_module.__file__).read_bytes()).hexdigest()[:16]
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(cache_folder() / "without_enables" / changed))
    coprocessor_rtlil.cache_clear()
    with always_enabled() as elaborated:
        yield elaborated
    coprocessor_rtlil.cache_clear()


@pytest.mark.slow   # each builds a simulator; tests/rtl/array/test_products_in_their_cycle.py has each unit
@pytest.mark.parametrize(("machine", "modules"), [
    pytest.param(replace(NANO, name="two paired lanes", lanes=2, array="winograd_inner"), {PairMultipliers, Product},
                 id="winograd_inner"),
    pytest.param(NANO, {Multipliers, Product}, id="winograd"),
    pytest.param(replace(NANO, name="two lanes of runs", lanes=2, array="inner"), {PairMultipliers, Product},
                 id="inner")])
def test_products_are_taken_in_the_cycle_in_which_they_stand(machine, modules, without_enables, tmp_path):
    assert_exact(machine, 0, tmp_path, MemoryTiming(latency_cycles=55, bytes_per_cycle=2))
    coprocessor_rtlil(machine, watched=True)    # of a simulator that an earlier run has built
    assert without_enables == modules
