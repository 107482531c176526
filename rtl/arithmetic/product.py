"""An unsigned product with registers before and after it, which maps to a DSP block."""

from collections.abc import Mapping

from amaranth import Module, Signal, Value
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.stream.stages import Pipeline

__all__ = ["MAX_BITS", "Product", "append_products"]

MAX_BITS = 18


class Product(Component):
    """``product`` is ``a * b`` as they were two cycles ago; each bank of registers loads only where it is enabled.

    Timing is that of ECP5's MULT18X18D with input and output registers: for that family synthesis puts `ecp5_product`
    (hardware/synthesis/ecp5_multipliers.v) in the place of this module. Those registers load in every cycle and have no
    reset: ``product_enable`` must follow ``enable`` by a cycle, and ``product`` is to be read in the cycle after that.

    Parameters
    ----------
    a_bits, b_bits : int
        Widths of the factors, up to 18.
    """

    LATENCY = 2

    def __init__(self, a_bits: int, b_bits: int) -> None:
        for name, bits in (("a_bits", a_bits), ("b_bits", b_bits)):
            if not 1 <= bits <= MAX_BITS:
                raise ValueError(f"Product {name} must be in 1..{MAX_BITS}, not {bits!r}")
        super().__init__({
            "a": In(a_bits),
            "b": In(b_bits),
            "enable": In(1),
            "product": Out(a_bits + b_bits),
            "product_enable": In(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        a, b = Signal.like(self.a, reset_less=True, name="a_held"), Signal.like(self.b, reset_less=True, name="b_held")
        with m.If(self.enable):
            m.d.sync += [a.eq(self.a), b.eq(self.b)]
        with m.If(self.product_enable):
            m.d.sync += self.product.eq(a * b)
        return m


def append_products(m: Module, pipe: Pipeline, factors: Mapping[str, tuple[Value, Value]], **carried: Value) -> None:
    """Append two stages to ``pipe`` that make products, in `Product` modules.

    Parameters
    ----------
    m : Module
        Gets the modules, as ``NAME_product``.
    pipe : Pipeline
    factors : dict of str to (Value, Value)
        Factors of up to 18 bits as they stand in the present stage, by the name of the product.
    carried : dict of Value
        Further registered values, computed from the present stage.
    """
    modules = {}
    for name, (a, b) in factors.items():
        m.submodules[f"{name}_product"] = modules[name] = module = Product(len(a), len(b))
        m.d.comb += [module.a.eq(a), module.b.eq(b), module.enable.eq(pipe.valid)]
    pipe.step(**carried)
    m.d.comb += [module.product_enable.eq(pipe.valid) for module in modules.values()]
    pipe.step()
    pipe.join(**{name: module.product for name, module in modules.items()})
