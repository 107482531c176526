"""The multipliers of inner products and what takes their place on ECP5, side by side, against Python's products."""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from tests.cocotb.bench_multipliers import pack

CYCLES = 4000
PAIRS, CHANNELS = (16, 1) if os.environ["PAIRS_KIND"] == "tile" else (8, 2)
WIDTHS = (10, 12, 23) if PAIRS == 16 else (8, 8, 18)
"""Of data, weights and products."""
BOUNDS = (512, 1152) if PAIRS == 16 else (128, 128)
COUNTS = {"even": PAIRS, "odd": PAIRS, "weight_even": CHANNELS * PAIRS, "weight_odd": CHANNELS * PAIRS}
ENABLES = {"data": ("even", "odd"), "weight": ("weight_even", "weight_odd")}


def draw(rng: random.Random, count: int, bound: int) -> list[int]:
    """Return values from -bound on, below bound, often the extremes."""
    if rng.random() < 0.3:
        return [rng.choice((-bound, 1 - bound, -1, 0, 1, bound - 1)) for _ in range(count)]
    return [rng.randint(-bound, bound - 1) for _ in range(count)]


def operands(held: dict[str, list[int]]) -> list[tuple[int, int]]:
    """Return what each multiplier multiplies."""
    return [(held["even"][k % PAIRS] + held["weight_odd"][k], held["odd"][k % PAIRS] + held["weight_even"][k])
            for k in range(CHANNELS * PAIRS)]


@cocotb.test()
async def both_make_the_products_of_sums(dut):
    """Each bank of the gateware's registers loads only with its enable. The block's product counts one cycle after it
    is made of operands one cycle old: what the array takes."""
    rng = random.Random(cocotb.RANDOM_SEED)
    Clock(dut.clk, 2, unit="ns").start()
    dut.rst.value = dut.clear.value = 0
    held: dict[str, list[int]] = {}
    factors: list[tuple[int, int]] | None = None
    products: list[int] | None = None
    compared = {"inferred": 0, "block": 0}
    came = fresh = False
    for _ in range(CYCLES):
        given = {name: draw(rng, count, BOUNDS[name.startswith("weight")]) for name, count in COUNTS.items()}
        enabled = {name: rng.random() < 0.6 for name in (*ENABLES, "operand", "product")}
        for name, values in given.items():
            getattr(dut, name).value = pack(values, WIDTHS[name.startswith("weight")])
        dut.clear.value = rng.random() < 0.1  # takes nothing from them: none of their registers has a reset
        for name, on in enabled.items():
            getattr(dut, f"{name}_enable").value = on
        await RisingEdge(dut.clk)  # the outputs read below are those before this edge
        for kind in ("inferred", "block"):
            for name in ENABLES["data"]:
                if name in held:
                    assert int(getattr(dut, f"{kind}_{name}_held").value) == pack(held[name], WIDTHS[0]), kind
            if products is not None and (fresh or kind == "inferred"):
                assert int(getattr(dut, f"{kind}_products").value) == pack(products, WIDTHS[2]), kind
                compared[kind] += 1
        came, fresh = enabled["operand"], came and enabled["product"]
        if enabled["product"] and factors is not None:
            products = [a * b for a, b in factors]
        if enabled["operand"] and len(held) == len(COUNTS):
            factors = operands(held)
        for bank, names in ENABLES.items():
            if enabled[bank]:
                held |= {name: given[name] for name in names}
    assert compared["inferred"] > 0.9 * CYCLES
    assert compared["block"] > 0.3 * CYCLES
