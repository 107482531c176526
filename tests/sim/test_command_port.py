"""The registers of the AXI4-Lite command port as a program on Ibex sees them."""

import pytest

from tests.support.firmware import compile_program
from tests.support.machines import HOSTED
from tilewright.isa.memory import MAIN_BASE, AddressWindow, Permission
from tilewright.sim.rtl_engine import run_rtl

MACHINE = HOSTED["ibex"]
WINDOWS = (AddressWindow(MAIN_BASE, MAIN_BASE + 0x10000, Permission.READ_WRITE),)


@pytest.fixture
def run(tmp_path):
    """Return a function from the body of ``main`` to its result."""
    def on_ibex(body):
        elf = compile_program(f'#include "tilewright.h"\nint main(void) {{ {body} }}\n', tmp_path, "ibex")
        return run_rtl(MACHINE, elf, windows=WINDOWS, host="ibex")
    return on_ibex


def test_the_address_of_a_fault_can_be_read_and_an_abort_ends_it(run):
    result = run("""
        tw_sta_status(0x90000000u);
        if (tw_sta_fence() != 2) return 50;
        if (TW_PORT(TW_PORT_FAULT_ADDRESS) != 0x90000000u) return 51;
        if ((TW_PORT(TW_PORT_STATUS) & ~TW_PORT_STATUS_QUIET) != (TW_PORT_STATUS_FAULT | TW_PORT_STATUS_READY))
            return 52;
        if (tw_sta_abort()) return 53;
        return (TW_PORT(TW_PORT_STATUS) & ~TW_PORT_STATUS_QUIET) != (TW_PORT_STATUS_IDLE | TW_PORT_STATUS_READY)
            || TW_PORT(TW_PORT_RESULT);
    """)
    assert (result.stop_reason, result.exit_code) == ("exit", 0)


def test_an_interrupted_master_saves_and_restores_the_operands(run):
    result = run("""
        TW_PORT(TW_PORT_RS1) = 0x80000000u;
        uint32_t rs1 = TW_PORT(TW_PORT_RS1), rs2 = TW_PORT(TW_PORT_RS2);
        tw_sta_set_source(4);
        TW_PORT(TW_PORT_RS1) = rs1;
        TW_PORT(TW_PORT_RS2) = rs2;
        TW_PORT(TW_PORT_COMMAND) = 0x6000600bu;
        if (tw_sta_fence()) return 50;
        return ((volatile uint32_t *)0x80000000u)[23] != 2;
    """)
    assert (result.stop_reason, result.exit_code) == ("exit", 0)


def test_a_full_queue_holds_the_core_and_loses_nothing(run):
    result = run("""
        for (int i = 0; i < 100; ++i) tw_sta_status(0x80000000u + 128 * (i % 8));
        if (tw_sta_fence()) return 50;
        uint32_t most = 0;
        for (int i = 0; i < 8; ++i) {
            uint32_t commands = ((volatile uint32_t *)0x80000000u)[32 * i + 23];
            if (commands > most) most = commands;
        }
        return most != 100;
    """)
    assert (result.stop_reason, result.exit_code) == ("exit", 0)
