"""The coprocessor's interrupt on each host: it wakes a core asleep, also for a fault; and others may come meanwhile."""

import pytest

from tests.sim.test_faults import CAUSES, IMAGES, NANO, PRELUDE, WINDOWS
from tests.support.firmware import compile_program
from tests.support.machines import HOSTED
from tilewright.isa.core_names import HOSTS
from tilewright.sim.rtl_engine import Simulation, run_rtl

ASLEEP = "#define TILEWRIGHT_WAIT_WFI 1\n"
BIT = 16

HANDLER = """
static volatile uint32_t taken, code;
#define TIMER_LOW (*(volatile uint32_t *)0x10000020u)
#define TIMER_HIGH (*(volatile uint32_t *)0x10000024u)
#define TIME (*(volatile uint32_t *)0x10000030u)
__asm__(".section .text.vectors, \\"ax\\"\\n.option push\\n.option norvc\\n.balign 256\\n"
        "vectors: .rept 32\\n j handle\\n .endr\\n.option pop\\n.text\\n");
extern char vectors[];
__attribute__((interrupt, used)) void handle(void)
{
    uint32_t cause;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    ++taken;
    if ((cause & 31u) == 7u)
        TIMER_LOW = TIME + 3000u;
    else
        code = tw_sta_fence();
}
static void enable(uint32_t bit)
{
    __asm__ volatile("csrw mtvec, %0\\n\\tcsrw mie, %1\\n\\tcsrsi mstatus, 8"
                     : : "r"((uint32_t)(uintptr_t)vectors | 1u), "r"(1u << bit) : "memory");
}
"""


@pytest.fixture(params=HOSTS)
def run(request, tmp_path):
    """Return a function from text before the header, and the rest of a program, to its run."""
    def build(head, rest):
        elf = compile_program(f"{head}{PRELUDE}{rest}", tmp_path, request.param)
        simulation = Simulation(images=IMAGES, max_cycles=4 * NANO.watchdog_cycles)
        return run_rtl(HOSTED[request.param], elf, simulation, windows=WINDOWS, host=request.param)
    return build


def test_a_core_asleep_is_woken_when_all_is_done(run):
    rest = "int main(void) { return work() || memory[0x800] == 0; }"
    polled, slept = run("", rest).require_exit(), run(ASLEEP, rest).require_exit()
    asleep = sum(end - first for first, end in slept.sleeps)
    assert not polled.sleeps
    assert asleep > 10
    assert slept.instructions > polled.instructions


@pytest.mark.parametrize("cause", CAUSES)
def test_a_fault_wakes_it_too(run, cause):
    provoke, code, _ = CAUSES[cause]
    result = run(ASLEEP, f"""int main(void) {{
        {provoke}
        if (tw_sta_fence() != {code}) return 100;
        if (tw_sta_abort()) return 101;
        return work();
    }}""")
    assert (result.stop_reason, result.exit_code) == ("exit", 0)


def test_a_deadlock_wakes_it_by_the_watchdog(run):
    result = run(ASLEEP, """int main(void) {
        tw_conv_run(TW_CONV_RUN_WAIT_ACT_READY, 0, 1, 0, 0, 1, 0, 0);
        return tw_sta_fence() == 6 ? 0 : 100;
    }""")
    assert result.exit_code == 0
    (first, end), = result.sleeps
    assert NANO.watchdog_cycles - 100 < end - first < NANO.watchdog_cycles + 100


def test_without_notify_there_is_no_interrupt(run):
    result = run("", f"""{HANDLER}
    int main(void) {{
        enable({BIT});
        if (work()) return 100;
        return taken;
    }}""")
    assert (result.stop_reason, result.exit_code) == ("exit", 0)


def test_the_interrupt_is_taken_once_and_a_fence_lowers_it(run):
    result = run("", f"""{HANDLER}
    int main(void) {{
        enable({BIT});
        load(0x80000000u);
        tw_sta_notify();
        while (!taken) ;
        load(0x80000000u);
        if (tw_sta_fence()) return 100;
        return taken == 1 && code == 0 ? 0 : 101;
    }}""")
    assert (result.stop_reason, result.exit_code) == ("exit", 0)


def test_interrupts_do_not_hold_up_the_watchdog(run):
    result = run("", f"""{HANDLER}
    int main(void) {{
        TIMER_LOW = TIME + 3000u;
        TIMER_HIGH = 0;
        enable(7);
        tw_conv_run(TW_CONV_RUN_WAIT_ACT_READY, 0, 1, 0, 0, 1, 0, 0);
        if (tw_sta_fence() != 6) return 100;
        return taken > 15 ? 0 : 101;
    }}""")
    assert (result.exit_code, result.stop_reason) == (0, "fault")
    assert result.cycles < 1.2 * NANO.watchdog_cycles
