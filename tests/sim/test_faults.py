"""Faults as software on each host sees them in RTL, without a pin.

A fence returns the code, a record has more, an abort ends it.
"""

import struct
from dataclasses import replace

import pytest

from tests.support.firmware import compile_program
from tests.support.machines import HOSTED
from tilewright.isa.core_names import HOSTS
from tilewright.isa.counters import FAULT_ADDRESS_WORD, FAULT_WORD, RECORD_WORDS
from tilewright.isa.encoding import SEMAPHORES
from tilewright.isa.machine import preset
from tilewright.isa.memory import MAIN_BASE, AddressWindow, Permission
from tilewright.sim.rtl_engine import Simulation, run_rtl

NANO = preset("nano")
RECORD = MAIN_BASE + 0x1000
CLOSED = 0x9000_0000
ABSENT = 0xC000_0000
WINDOWS = (AddressWindow(MAIN_BASE, MAIN_BASE + 0x10000, Permission.READ_WRITE),
           AddressWindow(ABSENT, ABSENT + 0x10000, Permission.READ_WRITE))
READ_ONLY = (AddressWindow(MAIN_BASE, MAIN_BASE + 0x10000),)
STORE_ACCESS_FAULT = 7
RES_FREE = [semaphore.name for semaphore in SEMAPHORES].index("res_free")

PRELUDE = """
#include <stdint.h>
#include "tilewright.h"
#define memory ((volatile uint32_t *)0x80000000u)

static __attribute__((unused)) void load(uint32_t address)
{
    tw_lda_set_row(16, 4, 16);
    tw_lda_set_step(64, 64);
    tw_lda_set_layout(16, 16, 0, 0, 0);
    tw_lda_linear(TW_LDA_LINEAR_SIGNAL_ACT_READY, address, 0, 2, 0);
}

/* Have values of memory pass through the array to post-processing and back to memory, 16 bytes at 0x80002000. */
static __attribute__((unused)) uint32_t work(void)
{
    tw_lda_set_row(64, 1, 64);
    tw_lda_set_step(64, 64);
    tw_lda_set_layout(64, 64, 0, 0, 0);
    tw_lda_linear(TW_LDA_LINEAR_SIGNAL_ACT_READY, 0x80000000u, 0, 1, 0);
    tw_ldw_parameters(TW_LDW_PARAMETERS_SIGNAL_WGT_READY, 0x80000800u, 0, 2);
    tw_conv_set_shape(4, 1, 1, 1);
    tw_conv_set_tile_step(16, 64);
    tw_conv_set_kernel_step(0, 0, 0);
    tw_conv_set_group_step(0);
    tw_pool_sum(TW_POOL_SUM_WAIT_ACT_READY | TW_POOL_SUM_WAIT_WGT_READY, 0, 1, 0, 0, 1, 0, 0);
    tw_act_set_output(4, 1, 4);
    tw_act_set_clamp(0, -128, 127, 0, 0, 0, 0);
    tw_act_run(TW_ACT_RUN_SIGNAL_OUT_READY, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0);
    tw_sta_set_row(4, 1, 4);
    tw_sta_set_source(4);
    tw_sta_set_target(4, 4);
    tw_sta_memory(TW_STA_MEMORY_WAIT_OUT_READY, 0x80002000u, 0, 1);
    return tw_sta_fence();
}
"""

LOADS_FROM = "load({:#x}u);"
STORES_TO = "tw_sta_set_row(4, 1, 4); tw_sta_set_source(4); tw_sta_set_target(4, 4); tw_sta_memory(0, {:#x}u, 0, 1);"
OVERFLOWS = ("tw_sta_set_row(1, 1, 1); "
             "for (int i = 0; i < 64; ++i) tw_sta_linear(TW_STA_LINEAR_SIGNAL_RES_FREE, 0, 0, 1);")

LOADS_NO_ROWS = "tw_lda_set_row(16, 4, 16); tw_lda_linear(0, 0x80000000u, 0, 0, 0);"
LOADS_NO_BYTES = "tw_lda_set_row(0, 4, 16);"

CAUSES = {
    "read outside": (LOADS_FROM.format(CLOSED), 1, CLOSED),
    "write outside": (STORES_TO.format(CLOSED), 2, CLOSED),
    "read error": (LOADS_FROM.format(ABSENT), 3, ABSENT),
    "write error": (STORES_TO.format(ABSENT), 4, ABSENT),
    "overflow": (OVERFLOWS, 5, RES_FREE),
    "no rows": (LOADS_NO_ROWS, 7, 0),
    "no bytes": (LOADS_NO_BYTES, 7, 5),
}

IMAGES = [(MAIN_BASE, bytes(range(64))), (MAIN_BASE + 0x800, struct.pack("<iI", 0, 1 << 23 | 23 << 24) * 2)]


@pytest.fixture(params=HOSTS)
def host(request):
    """Return the core beside the coprocessor."""
    return request.param


@pytest.fixture
def program(tmp_path, host):
    """Return a function from the body of ``main`` to an ELF for ``host``."""
    def build(body):
        return compile_program(f"{PRELUDE}\nint main(void) {{ {body} }}\n", tmp_path, host)
    return build


@pytest.mark.parametrize("cause", CAUSES)
def test_fence_returns_the_code_and_the_record_tells_it(program, host, cause):
    provoke, code, address = CAUSES[cause]
    elf = program(f"""
        {provoke}
        uint32_t fault = tw_sta_fence();
        if (fault != {code}) return 100 + fault;
        tw_sta_status({RECORD}u);
        if (tw_sta_fence() != fault) return 99;
        return fault;
    """)
    result = run_rtl(HOSTED[host], elf, Simulation(dumps=[(RECORD, 4 * RECORD_WORDS)]), windows=WINDOWS, host=host)
    assert (result.stop_reason, result.exit_code) == ("fault", code)
    words = struct.unpack(f"<{RECORD_WORDS}I", result.dumps[0])
    assert (words[FAULT_WORD], words[FAULT_ADDRESS_WORD]) == (code, address)
    assert words[0] > 0


@pytest.mark.parametrize("cause", CAUSES)
def test_after_an_abort_the_machine_works_again(program, host, cause):
    provoke, code, _ = CAUSES[cause]
    elf = program(f"""
        if (work()) return 50;
        uint32_t right = memory[0x800];
        memory[0x800] = 0;
        {provoke}
        if (tw_sta_fence() != {code}) return 51;
        if (tw_sta_abort()) return 52;
        if (work()) return 53;
        tw_sta_status({RECORD}u);
        if (tw_sta_fence()) return 54;
        return right == 0 || memory[0x800] != right || memory[0x400 + {FAULT_WORD}] != 0;
    """)
    result = run_rtl(HOSTED[host], elf, Simulation(images=IMAGES), windows=WINDOWS, host=host)
    assert (result.stop_reason, result.exit_code) == ("exit", 0)


def test_an_abort_of_a_machine_at_work_leaves_nothing(program, host):
    elf = program("""
        if (work()) return 50;
        uint32_t right = memory[0x800];
        memory[0x800] = 0;
        for (int i = 0; i < 40; ++i) {
            load(0x80000000u);
            tw_ldw_parameters(TW_LDW_PARAMETERS_SIGNAL_WGT_READY, 0x80000000u, 0, 200);
            for (volatile int wait = 0; wait < i; ++wait) ;
            if (tw_sta_abort()) return 51;
            if (work()) return 52;
            if (memory[0x800] != right) return 53;
            memory[0x800] = 0;
        }
        return 0;
    """)
    result = run_rtl(HOSTED[host], elf, Simulation(images=IMAGES), windows=WINDOWS, host=host)
    assert result.require_exit().exit_code == 0


def test_a_record_that_cannot_be_written_leaves_the_code(program, host):
    elf = program(f"tw_sta_status({RECORD}u); if (tw_sta_fence() != 2) return 50; tw_sta_status({RECORD}u); "
                  f"return tw_sta_fence();")
    result = run_rtl(HOSTED[host], elf, windows=READ_ONLY, host=host)
    assert (result.stop_reason, result.exit_code, str(result.fault)) == (
        "fault", 2, f"write outside the windows at {RECORD:#010x}")


def test_a_deadlock_ends_in_the_watchdogs_fault(program, host):
    elf = program("tw_conv_run(TW_CONV_RUN_WAIT_ACT_READY, 0, 1, 0, 0, 1, 0, 0);"
                  "if (tw_sta_fence() != 6) return 50; if (tw_sta_abort()) return 51; return work();")
    result = run_rtl(HOSTED[host], elf, Simulation(images=IMAGES), windows=WINDOWS, host=host)
    assert (result.stop_reason, result.exit_code) == ("exit", 0)
    assert result.cycles > NANO.watchdog_cycles


@pytest.mark.slow  # a simulator for each host
def test_a_command_that_never_ends_is_ended_where_the_machine_limits_its_cycles(program, host):
    limited = replace(HOSTED[host], command_cycles=4096)
    elf = program(f"""
        if (work()) return 50;
        uint32_t right = memory[0x800];
        memory[0x800] = 0;
        tw_lda_set_row(16, 4, 16);
        tw_lda_set_step(64, 64);
        for (int i = 0; i < 100; ++i) tw_lda_linear(0, 0x80000000u, 0, 16, 0);      // 25,600 words, no command has many
        if (tw_sta_fence()) return 51;
        tw_lda_set_row(64, 256, 0);
        tw_lda_set_step(0, 0);
        for (int i = 0; i < 20; ++i) tw_lda_linear(0, 0x80000000u, 0, 1023, 0);
        if (tw_sta_fence() != 10) return 52;
        tw_sta_status({RECORD}u);
        if (tw_sta_fence() != 10) return 53;
        if (!(memory[0x400 + {FAULT_ADDRESS_WORD}] >> 3 & 1)) return 54;     // the load was busy
        if (tw_sta_abort()) return 55;
        return work() || memory[0x800] != right;
    """)
    result = run_rtl(limited, elf, Simulation(images=IMAGES, max_cycles=200_000), windows=WINDOWS, host=host)
    assert (result.stop_reason, result.exit_code) == ("exit", 0)
    assert 25_600 + limited.command_cycles < result.cycles < 20 * limited.command_cycles


@pytest.mark.parametrize("word", ["0u", "0x7000000bu | 7u << 12"])
def test_a_word_that_is_no_instruction_is_an_access_fault_of_the_core(tmp_path, word):
    source = f"{PRELUDE}\nint main(void) {{ TW_PORT(TW_PORT_COMMAND) = {word}; return 0; }}\n"
    elf = compile_program(source, tmp_path, "ibex")
    result = run_rtl(HOSTED["ibex"], elf, windows=WINDOWS, host="ibex")
    assert (result.stop_reason, result.trap_cause) == ("trap", STORE_ACCESS_FAULT)
