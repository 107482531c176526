"""Actions of a run: registers clocked with and without gating, accesses by macro, leakage of what there is."""

import pytest

from tests.runtime.execution.test_report import record
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.energy.actions import Clock, actions_of, busy_cycles, core_actions
from tilewright.energy.registers import CORE_REGISTERS, registers_of
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS

BASE = WINOGRAD_MACHINES["base"]
COUNTS = record(1000, mac_setup=50, mac_wait_post=100, mac_idle_load=200, mac_idle_host=150, tile_slots=480,
                activation_read=4800, activation_written=333, weight_read=2404, weight_written=100, requantized=70,
                memory_read=640, memory_written=64, load_busy=300, store_busy=20, post_busy=600)
TOGGLES = {block: 10 * (index + 1) for index, block in enumerate(ENERGY_BLOCKS)}


def test_every_block_is_clocked_in_every_cycle_unless_gated():
    actions = actions_of(COUNTS, BASE, 500, TOGGLES, Clock(200.0))
    registers = registers_of(BASE)
    for block in ENERGY_BLOCKS:
        assert actions[f"{block}.register_cycle"] == 1000 * registers[block]
        assert actions[f"{block}.register_toggle"] == TOGGLES[block]
        assert actions[f"{block}.leakage_ns"] == registers[block] * 5000   # 1,000 cycles of 5 ns
    assert actions["riscv_core.register_cycle"] == 1000 * CORE_REGISTERS["cv32e40x"]


def test_blocks_have_work_in_cycles_that_the_counters_tell():
    assert busy_cycles(COUNTS) == {
        "array": 550, "sequencer": 650, "activation_buffer": 850, "weight_buffer": 850, "post_processing": 600,
        "load": 300, "store": 20, "control": 1000}


def test_clock_gates_leave_a_share_of_each_blocks_clock_and_all_leakage():
    ungated = dict.fromkeys(ENERGY_BLOCKS, 0.0) | {"load": 0.1, "control": 1.0, "riscv_core": 0.2}
    actions = actions_of(COUNTS, BASE, 500, TOGGLES, Clock(200.0, ungated))
    registers = registers_of(BASE)
    assert actions["array.register_cycle"] == 0
    assert actions["array.register_toggle"] == TOGGLES["array"]
    assert actions["load.register_cycle"] == pytest.approx(0.1 * 1000 * registers["load"])
    assert actions["control.register_cycle"] == 1000 * registers["control"]
    assert actions["load.leakage_ns"] == registers["load"] * 5000   # a stopped clock stops no leakage
    assert actions["riscv_core.register_cycle"] == pytest.approx(0.2 * 1000 * CORE_REGISTERS["cv32e40x"])


def test_memories_are_priced_by_macro_and_port():
    actions = actions_of(COUNTS, BASE, 500, TOGGLES, Clock(200.0))
    assert actions["activation_buffer.read@8192x8"] == 4800
    assert actions["activation_buffer.write@8192x8"] == 333
    assert actions["weight_buffer.read@32768x64"] == 301     # 8 bytes each, the last one partly used
    assert actions["weight_buffer.write@32768x64"] == 13
    assert actions["sums.read@64x32"] == 480 * 4 * 4 + 4 * 70
    assert actions["sums.write@64x32"] == 480 * 4 * 4
    assert actions["parameter_buffer.read@2048x64"] == 70
    assert actions["main_memory.dram_byte"] == 704
    assert actions["activation_buffer.leakage_ns@8192x8"] == 16 * 5000
    assert actions["weight_buffer.leakage_ns@8192x128"] == 5000
    assert actions["sums.leakage_ns@64x32"] == 32 * 5000


@pytest.mark.parametrize("machine", WINOGRAD_MACHINES.values(), ids=lambda machine: machine.name)
def test_macros_hold_what_the_buffers_hold(machine):
    actions = actions_of(COUNTS, machine, 0, TOGGLES, Clock(1000.0))
    held = dict.fromkeys(("activation_buffer", "weight_buffer", "parameter_buffer", "result_buffer"), 0.0)
    for action, count in actions.items():
        component, _, macro = action.partition(".leakage_ns@")
        if component in held:
            held[component] += int(macro.split("x")[0]) * count / COUNTS["cycles"]
    assert held == {"activation_buffer": machine.activation_bytes,
                    "weight_buffer": machine.weight_bytes + machine.weight_bytes // 8,
                    "parameter_buffer": 8 * machine.parameter_channels, "result_buffer": machine.result_bytes}


def test_a_core_alone_fetches_every_instruction():
    actions = core_actions(1000, 800, Clock(500.0), core="cv32e40p", loads=30, stores=20)
    assert actions == {
        "xpulp_core.instruction": 800, "xpulp_core.read@32768x32": 830, "xpulp_core.write@32768x32": 20,
        "xpulp_core.register_cycle": 1000 * CORE_REGISTERS["cv32e40p"],
        "xpulp_core.leakage_ns": 2000 * CORE_REGISTERS["cv32e40p"], "xpulp_core.leakage_ns@32768x32": 2000}


def test_a_core_asleep_leaks_and_is_not_clocked():
    awake, asleep = core_actions(1000, 800, Clock(500.0)), core_actions(1000, 800, Clock(500.0), asleep=300)
    assert asleep.pop("riscv_core.register_cycle") == 0.7 * awake.pop("riscv_core.register_cycle")
    assert asleep == awake
    of_run = actions_of(COUNTS, BASE, 500, TOGGLES, Clock(200.0), asleep=COUNTS["cycles"])
    assert of_run["riscv_core.register_cycle"] == 0
