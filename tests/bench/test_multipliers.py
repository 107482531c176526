"""The replacement of the lane's multipliers on ECP5 behaves as they do, on a model of Lattice's block."""

from pathlib import Path

from amaranth import ClockSignal, Instance, Module, ResetSignal, Value
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import Component, In, Out

from tests.support.bench import ROOT, run_bench
from tilewright.rtl.lane import Multipliers
from tilewright.rtl.winograd import DATA, PRODUCT, WEIGHT

REPLACEMENT = ROOT / "sim" / "synthesis" / "ecp5_multipliers.v"
BLOCK = Path(__file__).parents[1] / "support" / "mult18x18d.v"


class SideBySide(Component):
    """`Multipliers` and the module that synthesis for ECP5 puts in their place, on the same inputs."""

    a: In(ArrayLayout(DATA, 16))
    a_enable: In(1)
    b: In(ArrayLayout(WEIGHT, 16))
    b_enable: In(1)
    products_enable: In(1)
    inferred_a_held: Out(ArrayLayout(DATA, 16))
    inferred_products: Out(ArrayLayout(PRODUCT, 16))
    block_a_held: Out(ArrayLayout(DATA, 16))
    block_products: Out(ArrayLayout(PRODUCT, 16))

    def elaborate(self, platform):
        m = Module()
        m.submodules.multipliers = multipliers = Multipliers()
        inputs = [name for name, member in multipliers.signature.members.items() if member.flow is In]
        m.d.comb += [
            *(getattr(multipliers, name).eq(getattr(self, name)) for name in inputs),
            self.inferred_a_held.eq(multipliers.a_held),
            self.inferred_products.eq(multipliers.products),
        ]
        m.submodules.block = Instance(
            "ecp5_multipliers",
            ("i", "clk", ClockSignal()), ("i", "rst", ResetSignal()),
            *(("i", name, Value.cast(getattr(self, name))) for name in inputs),
            ("o", "a_held", Value.cast(self.block_a_held)),
            ("o", "products", Value.cast(self.block_products)),
        )
        return m


def test_the_replacement_on_ecp5_equals_the_multipliers():
    run_bench(SideBySide(), module="tests.bench.bench_multipliers", toplevel="multipliers_side_by_side",
              sources=(REPLACEMENT, BLOCK))
