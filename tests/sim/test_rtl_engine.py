"""Programs on the RTL: what they see of coprocessor and memory, and how a run that goes wrong is reported."""

import struct

import pytest

from tests.support.firmware import compile_program
from tilewright.errors import SimulationError
from tilewright.isa.counters import COUNTERS, RECORD_WORDS
from tilewright.isa.encoding import SEMAPHORES
from tilewright.isa.machine import MemoryTiming, preset
from tilewright.isa.memory import MAIN_BASE, AddressWindow, Permission
from tilewright.sim.rtl_engine import Simulation, run_bare, run_rtl

NANO = preset("nano")
EVERYWHERE = (AddressWindow(MAIN_BASE, MAIN_BASE + 0x10000, Permission.READ_WRITE),)
RECORD = MAIN_BASE + 0x1000

PRELUDE = """
#include <stdint.h>
#include "tilewright.h"
#define memory ((volatile uint32_t *)0x80000000u)
#define mark(number) (*(volatile uint32_t *)0x10000010u = (number))
void print(const char *text) { while (*text) *(volatile uint32_t *)0x10000000u = (uint8_t)*text++; }
"""

LOAD_TWO_ROWS = """
    tw_lda_set_row(16, 4, 16);
    tw_lda_set_step(64, 64);
    tw_lda_set_layout(16, 16, 0, 0, 0);
    tw_lda_linear(TW_LDA_LINEAR_SIGNAL_ACT_READY, {address}, 0, 2, 0);
"""


@pytest.fixture
def program(tmp_path):
    """Return a function from the body of ``main`` to an ELF."""
    def build(body):
        return compile_program(f"{PRELUDE}\nint main(void) {{ {body} }}\n", tmp_path)
    return build


def record(words):
    return dict(zip([counter.name for counter in COUNTERS], struct.unpack(f"<{RECORD_WORDS}I", words), strict=False))


def test_status_record_tells_what_a_load_did(program):
    elf = program(LOAD_TWO_ROWS.format(address="0x80000000u") + f"""
        tw_sta_fence();
        tw_sta_status({RECORD}u);
        tw_sta_fence();
        return memory[0x400] == 0 || memory[0x400 + {RECORD_WORDS - 1}] != 0;
    """)
    result = run_rtl(NANO, elf, Simulation(dumps=[(RECORD, 4 * RECORD_WORDS)]), windows=EVERYWHERE).require_exit()
    shown = record(result.dumps[0])
    assert shown["memory_read"] == shown["activation_written"] == 128
    assert shown["commands"] == 6       # the status command itself among them
    assert sum(value for name, value in shown.items() if name.startswith("mac_")) == shown["cycles"]
    assert shown["mac_idle_load"] == shown["load_busy"] > MemoryTiming().latency_cycles
    assert shown["tile_slots"] == shown["requantized"] == 0
    assert shown["store_busy"] <= 1 + len(COUNTERS)     # with the record, until its walk begins
    assert result.words_read == 128 // NANO.bus_bytes
    assert result.words_written == RECORD_WORDS * 4 // NANO.bus_bytes


def test_a_fence_keeps_loads_behind_it_from_running_ahead(program):
    elf = program(f"""
        for (int i = 0; i < 20; ++i) {{
            memory[0x400] = 0xdeadbeef;
            tw_sta_status({RECORD}u);
            tw_sta_fence();
            if (memory[0x400] == 0xdeadbeef) return 1;
        }}
        return 0;
    """)
    run_rtl(NANO, elf, windows=EVERYWHERE).require_exit()


def test_a_full_queue_blocks_the_core_and_loses_nothing(program):
    elf = program("uint32_t sum = 0;" + LOAD_TWO_ROWS.format(address="0x80000000u") + f"""
        for (int i = 0; i < 100; ++i) {{
            tw_lda_linear(0, 0x80000000u, 0, 2, 0);
            sum += memory[1];      // a load behind a command that may have to wait
        }}
        tw_sta_fence();
        tw_sta_status({RECORD}u);
        tw_sta_fence();
        return sum != 700;
    """)
    result = run_rtl(NANO, elf, Simulation(images=[(MAIN_BASE, struct.pack("<2I", 0, 7))],
                                           dumps=[(RECORD, 4 * RECORD_WORDS)]), windows=EVERYWHERE).require_exit()
    shown = record(result.dumps[0])
    assert shown["memory_read"] == 101 * 128
    assert shown["commands"] == 3 + 101 + 2


@pytest.mark.parametrize(("windows", "address", "said"), [
    ((), 0x8000_0000, "read outside the windows"),
    ((AddressWindow(MAIN_BASE, MAIN_BASE + 64),), 0x8000_0000, "read outside the windows"),
    ((AddressWindow(0xC000_0000, 0xC001_0000),), 0xC000_0000, "error response to a read"),
])
def test_a_forbidden_read_stops_the_run_and_names_the_address(program, windows, address, said):
    elf = program(LOAD_TWO_ROWS.format(address=f"{address:#x}u") + "return tw_sta_fence();")
    result = run_rtl(NANO, elf, windows=windows)
    assert result.stop_reason == "fault"
    assert result.fault is not None
    assert result.fault.address - address in (0, 64)
    assert str(result.fault) == f"{said} at {result.fault.address:#010x}"
    with pytest.raises(SimulationError, match=rf"{said} at 0x[8c]00000[04]0"):
        result.require_exit()


def test_a_forbidden_write_stops_the_run_and_names_the_address(program):
    elf = program(f"tw_sta_status({RECORD}u); tw_sta_fence(); return 0;")
    result = run_rtl(NANO, elf, windows=(AddressWindow(MAIN_BASE, MAIN_BASE + 0x10000),))
    assert result.explanation.startswith(
        f"Program was stopped by a fault of the coprocessor, write outside the windows at {RECORD:#010x}, after ")


def test_a_signal_too_many_stops_the_run_and_names_the_semaphore(program):
    elf = program("""
        tw_sta_set_row(1, 1, 1);
        for (int i = 0; i < 64; ++i) tw_sta_linear(TW_STA_LINEAR_SIGNAL_RES_FREE, 0, 0, 1);
        return tw_sta_fence();
    """)
    result = run_rtl(NANO, elf)
    index = [semaphore.name for semaphore in SEMAPHORES].index("res_free")
    assert str(result.fault) == f"a semaphore would overflow at {index:#010x}"


def test_a_program_that_waits_for_ever_is_told_on(program):
    elf = program("tw_conv_run(TW_CONV_RUN_WAIT_ACT_READY, 0, 1, 0, 0, 1, 0, 0); tw_sta_fence(); return 0;")
    result = run_rtl(NANO, elf, Simulation(no_progress_cycles=5000))
    assert result.stop_reason == "no progress"
    assert "mac waits for activations" in result.activity
    assert "semaphores above zero: none" in result.explanation


def test_what_is_no_instruction_traps(program):
    elf = program('__asm__ volatile(".insn r 0x0b, 7, 0, x0, x0, x0"); return 0;')
    result = run_rtl(NANO, elf)
    assert (result.stop_reason, result.trap_cause) == ("trap", 2)
    assert result.pc != 0


def test_output_marks_and_exit_code(program):
    elf = program('print("one\\n"); mark(1); print("two\\n"); mark(2); return 42;')
    seen = []
    result = run_bare(elf, Simulation(progress=lambda cycles, mark: seen.append((cycles, mark))))
    assert result.output == "one\ntwo\n"
    assert [number for number, _ in result.marks] == [1, 2]
    assert 0 < result.marks[0][1] < result.marks[1][1] < result.cycles
    assert result.instructions < result.cycles
    assert seen[-1] == (result.cycles, 2)
    assert result.explanation == f"Program exited with code 42 after {result.cycles} cycles"
    with pytest.raises(SimulationError, match=r"^Program exited with code 42 after \d+ cycles\.$"):
        result.require_exit()


def test_main_memory_costs_the_core_its_latency(program):
    elf = program("uint32_t sum = 0; for (int i = 0; i < 100; ++i) sum += memory[i]; return sum != 100;")
    images = [(MAIN_BASE, struct.pack("<I", 1) * 100)]
    fast = run_bare(elf, Simulation(images=images)).require_exit()
    slow = run_bare(elf, Simulation(images=images), zero_wait=False,
                    timing=MemoryTiming(latency_cycles=50)).require_exit()
    assert slow.instructions == fast.instructions
    assert slow.cycles - fast.cycles == pytest.approx(100 * 49, rel=0.03)


def test_images_come_from_files_too_and_dumps_go_back(program, tmp_path):
    (tmp_path / "image").write_bytes(bytes(range(64)))
    elf = program("memory[3] += 1; return 0;")
    result = run_bare(elf, Simulation(images=[(MAIN_BASE + 4, tmp_path / "image")],
                                      dumps=[(MAIN_BASE, 8), (MAIN_BASE + 12, 4)]))
    assert result.dumps == (bytes(4) + bytes(range(4)), bytes([9, 9, 10, 11]))


def test_an_address_where_nothing_is_stops_the_run(program):
    result = run_bare(program("return *(volatile uint32_t *)0x20000000u;"))
    assert result.stop_reason == "bus error"
    assert result.address == 0x2000_0000
    assert result.explanation.startswith("Program used address 0x20000000, where there is no memory, at pc 0x0000")


def test_a_cycle_limit_is_kept(program):
    result = run_bare(program("for (;;) ;"), Simulation(max_cycles=1234))
    assert (result.stop_reason, result.cycles) == ("cycle limit", 1234)


def test_waves_are_written_by_a_build_of_their_own(program, tmp_path):
    elf, wave = program("return 0;"), tmp_path / "wave.vcd"
    traced = run_bare(elf, Simulation(wave=wave)).require_exit()
    assert traced.cycles == run_bare(elf).cycles
    assert "$enddefinitions" in wave.read_text()


@pytest.mark.parametrize("cycles", [range(40, 41), range(50, 75)])
def test_a_wave_shows_just_the_cycles_asked_for(program, tmp_path, cycles):
    wave = tmp_path / "wave.vcd"
    traced = run_bare(program("for (volatile int i = 0; i < 20;) i = i + 1; return 0;"),
                      Simulation(wave=wave, wave_cycles=(cycles,))).require_exit()
    assert traced.cycles > cycles.stop
    times = [int(line[1:]) for line in wave.read_text().splitlines() if line.startswith("#")]
    before = 8  # cycles of reset, two steps of time each, as every cycle
    assert (times[0], times[-1]) == (2 * (before + cycles.start), 2 * (before + cycles.stop) - 1)


@pytest.mark.parametrize(("content", "sentence"), [
    (b"no ELF at all", "ELF file is too short"),
    (bytes(64), "File must be a 32-bit RISC-V ELF"),
])
def test_what_is_no_program_is_refused(tmp_path, content, sentence):
    (tmp_path / "program").write_bytes(content)
    with pytest.raises(SimulationError, match=f"^Simulator refused to run: {sentence}"):
        run_bare(tmp_path / "program")


def test_images_outside_memory_are_refused(program):
    with pytest.raises(SimulationError, match=r"4 bytes .*0x40000000$"):
        run_bare(program("return 0;"), Simulation(images=[(0x4000_0000, bytes(4))]))
