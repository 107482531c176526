"""Modules that take the place of multipliers on ECP5 behave as they do, on a model of Lattice's block."""

import pytest
from amaranth import ClockSignal, Instance, Module, ResetInserter, ResetSignal, Value
from amaranth.lib.wiring import Component, In, Out

from tests.support.bench import ROOT, run_bench
from tilewright.rtl.arithmetic.product import Product
from tilewright.rtl.array.inner_lane import CHANNELS
from tilewright.rtl.array.lane import Multipliers
from tilewright.rtl.array.pair_multipliers import RUN, TILE, PairMultipliers

SYNTHESIS = ROOT / "hardware" / "synthesis"
BLOCK = ROOT / "tests" / "support" / "mult18x18d.v"


class SideBySide(Component):
    """A component and the Verilog module that synthesis puts in its place, on the same inputs.

    Outputs are named ``inferred_`` (the component's) and ``block_`` (the module's). ``clear`` resets as
    `Coprocessor` does.
    """

    def __init__(self, component, replacement):
        self.component = component
        self.replacement = replacement
        members = component.signature.members
        self.inputs = [name for name, member in members.items() if member.flow is In]
        self.outputs = [name for name, member in members.items() if member.flow is Out]
        super().__init__({name: members[name] for name in self.inputs} | {"clear": In(1)} | {
            f"{kind}_{name}": members[name] for kind in ("inferred", "block") for name in self.outputs})

    def elaborate(self, platform):
        m = Module()
        m.submodules.component = ResetInserter(self.clear)(self.component)
        m.d.comb += [
            *(getattr(self.component, name).eq(getattr(self, name)) for name in self.inputs),
            *(getattr(self, f"inferred_{name}").eq(getattr(self.component, name)) for name in self.outputs),
        ]
        m.submodules.block = Instance(
            self.replacement,
            ("i", "clk", ClockSignal()), ("i", "rst", ResetSignal()), ("i", "clear", self.clear),
            *(("i", name, Value.cast(getattr(self, name))) for name in self.inputs),
            *(("o", name, Value.cast(getattr(self, f"block_{name}"))) for name in self.outputs),
        )
        return m


def test_the_array_s_multipliers():
    run_bench(SideBySide(Multipliers(), "ecp5_multipliers"), module="tests.cocotb.bench_multipliers",
              toplevel="multipliers_side_by_side", sources=(SYNTHESIS / "ecp5_multipliers.v", BLOCK))


@pytest.mark.parametrize(("kind", "factors", "channels", "replacement"), [
    ("run", RUN, CHANNELS, "ecp5_pairs"), ("tile", TILE, 1, "ecp5_tile_factors")])
def test_the_multipliers_of_inner_products(kind, factors, channels, replacement):
    run_bench(SideBySide(PairMultipliers(factors, channels), replacement),
              module="tests.cocotb.bench_pair_multipliers", toplevel=f"{kind}_pairs_side_by_side",
              environment={"PAIRS_KIND": kind}, sources=(SYNTHESIS / "ecp5_multipliers.v", BLOCK))


@pytest.mark.parametrize(("a_bits", "b_bits"), [(18, 18), (18, 6), (6, 6), (8, 18)])
def test_the_products_of_post_processing(a_bits, b_bits):
    run_bench(SideBySide(Product(a_bits, b_bits), "ecp5_product"), module="tests.cocotb.bench_product",
              toplevel="product_side_by_side", environment={"A_BITS": a_bits, "B_BITS": b_bits},
              sources=(SYNTHESIS / "ecp5_multipliers.v", BLOCK))
