"""The AXI4-Lite command port in Verilator, under a master that pauses on every channel."""

import pytest

from tests.support.bench import run_bench
from tilewright.rtl.port.command_registers import CommandRegisters


@pytest.mark.parametrize("stall", [0.0, 0.3, 0.8])
def test_command_registers(stall):
    run_bench(CommandRegisters(), module="tests.cocotb.bench_command_registers", toplevel="command_registers",
              environment={"STALL": stall, "COUNT": 600}, seed=int(10 * stall))


@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_host_registers(stall):
    run_bench(CommandRegisters(windows="registers"), module="tests.cocotb.bench_host_registers",
              toplevel="host_registers", environment={"STALL": stall, "COUNT": 1}, seed=3)
