"""The lane's multipliers and what takes their place on ECP5, side by side, against products made in Python."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

WIDTHS = {"a": 10, "b": 12}
PRODUCT_WIDTH = 21
CYCLES = 4000


def pack(values: list[int], width: int) -> int:
    """Return ``values`` as one number, ``width`` bits each."""
    return sum((value & (1 << width) - 1) << (width * place) for place, value in enumerate(values))


def draw(rng: random.Random, width: int) -> list[int]:
    """Return sixteen signed numbers, often the extremes."""
    low, high = -(1 << width - 1), (1 << width - 1) - 1
    if rng.random() < 0.2:
        return [rng.choice((low, low + 1, -1, 0, 1, high)) for _ in range(16)]
    return [rng.randint(low, high) for _ in range(16)]


@cocotb.test()
async def both_make_the_products_of_what_they_hold(dut):
    """Each register of the gateware's loads only with its enable. The block's product counts one cycle after it is made
    of data that came one cycle before: what the array takes."""
    rng = random.Random(cocotb.RANDOM_SEED)
    Clock(dut.clk, 2, unit="ns").start()
    dut.rst.value = dut.clear.value = 0
    held: dict[str, list[int] | None] = {"a": None, "b": None}
    products: list[int] | None = None
    compared = {"inferred": 0, "block": 0}
    came = fresh = False
    for _ in range(CYCLES):
        given = {name: draw(rng, width) for name, width in WIDTHS.items()}
        enabled = {name: rng.random() < 0.6 for name in (*WIDTHS, "products")}
        for name, width in WIDTHS.items():
            getattr(dut, name).value = pack(given[name], width)
        dut.clear.value = rng.random() < 0.1  # takes nothing from them: none of their registers has a reset
        for name, on in enabled.items():
            getattr(dut, f"{name}_enable").value = on
        await RisingEdge(dut.clk)  # the outputs read below are those before this edge
        for kind in ("inferred", "block"):
            if held["a"] is not None:
                assert int(getattr(dut, f"{kind}_a_held").value) == pack(held["a"], WIDTHS["a"]), kind
            if products is not None and (fresh or kind == "inferred"):
                assert int(getattr(dut, f"{kind}_products").value) == pack(products, PRODUCT_WIDTH), kind
                compared[kind] += 1
        came, fresh = enabled["a"], came and enabled["products"]
        if enabled["products"] and held["a"] is not None and held["b"] is not None:
            products = [a * b for a, b in zip(held["a"], held["b"], strict=True)]
        for name in WIDTHS:
            if enabled[name]:
                held[name] = given[name]
    assert compared["inferred"] > 0.9 * CYCLES
    assert compared["block"] > 0.3 * CYCLES
