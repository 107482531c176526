"""The product of post-processing and what takes its place on ECP5, side by side, against products made in Python."""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

CYCLES = 4000


@cocotb.test()
async def both_make_the_product_of_what_they_hold(dut):
    """Each register of the gateware's loads only with its enable. The block's product counts one cycle after it is made
    of factors one cycle old: what post-processing takes."""
    limits = {name: (1 << int(os.environ[f"{name.upper()}_BITS"])) - 1 for name in ("a", "b")}
    rng = random.Random(cocotb.RANDOM_SEED)
    Clock(dut.clk, 2, unit="ns").start()
    dut.rst.value, dut.clear.value = 1, 0
    dut.enable.value = dut.product_enable.value = 0
    for _ in range(2):
        await RisingEdge(dut.clk)
    held, product = None, 0
    came, fresh, compared = False, False, 0
    for cycle in range(CYCLES):
        reset, clear = cycle % 1000 == 999, cycle % 300 == 299
        given = {name: rng.choice((0, 1, limit, rng.randint(0, limit))) for name, limit in limits.items()}
        enable, product_enable = rng.random() < 0.6, held is not None and rng.random() < 0.6
        dut.rst.value, dut.clear.value = reset, clear
        dut.enable.value, dut.product_enable.value = enable, product_enable
        dut.a.value, dut.b.value = given["a"], given["b"]
        await RisingEdge(dut.clk)  # the outputs read below are those before this edge
        assert int(dut.inferred_product.value) == product, cycle
        if fresh:
            assert int(dut.block_product.value) == product, cycle
            compared += 1
        came, fresh = enable, came and product_enable and not (reset or clear)
        if reset or clear:
            product = 0
        elif product_enable:
            product = held["a"] * held["b"]
        if enable:
            held = given
    assert compared > 0.3 * CYCLES
