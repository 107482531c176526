"""One look-up through the table of tests/sim/verilog/test_elaborate.py, which checks the bench itself with it."""

import os

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge


@cocotb.test()
async def looks_up_the_table(dut):
    Clock(dut.clk, 2, unit="ns").start()
    dut.rst.value = 0
    dut.i__payload.value = 5
    dut.i__valid.value = 1
    dut.o__ready.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    assert int(dut.o__payload.value) == int(os.environ["TRANSLATE_EXPECTED"])
