"""The core's register file and the one for ECP5, side by side, against registers in Python."""

import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge

CYCLES = 4000


@cocotb.test()
async def both_read_what_was_written_last(dut):
    """Both ports, in every cycle, also the register that is being written, and x0, which stays zero."""
    rng = random.Random(cocotb.RANDOM_SEED)
    Clock(dut.clk, 2, unit="ns").start()
    dut.rst.value = 1
    dut.we.value = 0
    await FallingEdge(dut.clk)
    dut.rst.value = 0
    registers = {0: 0}
    compared = 0
    for _ in range(CYCLES):
        target, value, enabled = rng.choice((0, rng.randrange(32))), rng.getrandbits(32), rng.random() < 0.7
        places = [rng.choice((target, rng.randrange(32))) for _ in range(2)]
        dut.waddr.value, dut.wdata.value, dut.we.value = target, value, enabled
        dut.raddr.value = places[0] | places[1] << 5
        await FallingEdge(dut.clk)  # behind the edge that writes
        if enabled and target:
            registers[target] = value
        for kind in ("core", "block"):
            words = int(getattr(dut, f"{kind}_rdata").value)
            for port, place in enumerate(places):
                if place in registers:
                    assert words >> 32 * port & 0xFFFF_FFFF == registers[place], (kind, place)
                    compared += 1
    assert compared > CYCLES
