"""Actions are counted as stated, priced as the technology file says, and nothing goes unpriced."""

import math
from dataclasses import replace

import pytest

from tilewright.isa.counters import COUNTERS
from tilewright.isa.machine import PRESETS, preset
from tilewright.sim.actions import actions_of, core_actions
from tilewright.sim.energy import FOLDER, Technology, TechnologyError, estimate

GENERIC45 = Technology.load("generic45")
NOTHING = {counter.name: 0 for counter in COUNTERS}
TEXT = (FOLDER / "generic45.toml").read_text(encoding="utf-8")

TOY = """
name = "toy"
summary = "for a test"
calibrated = false
[price.multiply]
pJ = 2.0
node = "none"
kind = "assumed"
source = "this test"
factors = [[0.5, 3.0, "first"], [0.5, 1.0, "second"]]
[sram]
port_bits = 32
bytes = [1024, 4096]
read_pJ = [1.0, 4.0]
write_pJ = [2.0, 8.0]
width_exponent = 0.5
node = "none"
kind = "cacti"
source = "this test"
factors = [[0.5, 2.0, "one"]]
"""


@pytest.mark.parametrize("machine", PRESETS.values(), ids=lambda machine: machine.name)
def test_every_counter_that_costs_energy_is_an_action_with_a_price(machine):
    costly = ("tile_slots", "requantized", "residual_added", "activation_read", "activation_written", "weight_read",
              "weight_written", "result_read", "result_written", "memory_read", "memory_written", "cycles",
              "table_read")
    nothing = estimate(actions_of(NOTHING, machine, 0), GENERIC45)
    assert (nothing.total_uj, nothing.low_uj, nothing.high_uj) == (0, 0, 0)
    for name in costly:
        energy = estimate(actions_of(NOTHING | {name: 1000}, machine, 0), GENERIC45)
        assert 0 < energy.low_uj < energy.total_uj < energy.high_uj, name
        assert energy.total_uj == pytest.approx(sum(energy.by_component.values()))
    assert estimate(actions_of(NOTHING, machine, 1000), GENERIC45).by_component["riscv_core"] > 0


def test_actions_of_base():
    counters = NOTHING | {"cycles": 10, "tile_slots": 3, "requantized": 5, "residual_added": 2, "activation_read": 7,
                          "activation_written": 4, "weight_read": 17, "weight_written": 16, "result_read": 8,
                          "result_written": 9, "memory_read": 24, "memory_written": 11, "table_read": 13}
    assert actions_of(counters, preset("base"), 6) == {
        "array.multiply": 3 * 64,
        "array.add": 3 * (32 + 4 * 12),
        "post_processing.requantize": 5,
        "post_processing.residual_add": 2,
        "activation_buffer.read@8192x8": 7,
        "activation_buffer.write@8192x8": 4,
        "weight_buffer.read@32768x64": 3,
        "weight_buffer.write@32768x64": 2,
        "parameter_buffer.read@2048x64": 5,
        "value_table.read@1024x64": 13,
        "result_buffer.read@4096x8": 8,
        "result_buffer.write@4096x8": 9,
        "main_memory.dram_byte": 35,
        "riscv_core.instruction": 6,
        "riscv_core.read@32768x32": 6,
        "clock.register_cycle": 10 * (64 * 70 + 6000 + 2200),
    }


def test_weights_of_nano_come_in_words_of_its_narrow_bus():
    actions = actions_of(NOTHING | {"weight_written": 16}, preset("nano"), 0)
    assert actions["weight_buffer.write@8192x64"] == 4


def test_core_actions_fetch_every_instruction():
    assert core_actions(cycles=10, instructions=8, loads=2, stores=1) == {
        "riscv_core.instruction": 8, "riscv_core.read@32768x32": 10, "riscv_core.write@32768x32": 1,
        "clock.register_cycle": 22000}


def test_a_larger_buffer_costs_more_for_the_same_bytes():
    base = preset("base")
    counters = NOTHING | {"activation_read": 10**6}
    small, large = (estimate(actions_of(counters, machine, 0), GENERIC45).total_uj
                    for machine in (base, replace(base, activation_bytes=1 << 20)))
    assert small < large


def test_counts_times_prices_with_ranges_in_the_log_domain():
    energy = estimate({"array.multiply": 3_000_000, "buffer.read@1024x32": 1_000_000}, Technology.parse(TOY))
    assert energy.by_component == {"array": pytest.approx(6.0), "buffer": pytest.approx(1.0)}
    assert energy.total_uj == pytest.approx(7.0)
    assert energy.low_uj == pytest.approx(6.0 * math.exp(-math.sqrt(2) * math.log(2)) + 0.5)
    assert energy.high_uj == pytest.approx(6.0 * 3.0 + 2.0)


@pytest.mark.parametrize(("action", "picojoules"), [
    ("buffer.read@1024x32", 1.0), ("buffer.read@4096x32", 4.0),
    ("buffer.read@2048x32", 2.0),   # halfway on a logarithmic scale
    ("buffer.read@8192x32", 8.0), ("buffer.read@256x32", 0.25),   # the power law goes on outside the table
    ("buffer.write@2048x32", 4.0), ("buffer.read@1024x128", 2.0), ("buffer.read@1024x8", 0.5),
])
def test_sram_prices_follow_power_laws_in_size_and_width(action, picojoules):
    assert Technology.parse(TOY).price(action).picojoules == pytest.approx(picojoules)


@pytest.mark.parametrize("action", ["array.divide", "multiply", "array.multiply@1x2", "buffer.read", "buffer.erase@1x2",
                                    "buffer.read@1024", "buffer.read@x8", "buffer.read@-1x8"])
def test_an_unpriced_action_is_an_error(action):
    message = rf"^Technology toy prices multiply, and read and write .* not '{action}'$"
    with pytest.raises(TechnologyError, match=message):
        estimate({action: 1}, Technology.parse(TOY))


def test_unknown_technology():
    with pytest.raises(TechnologyError, match=r"^Technology must be one of generic45, not 'generic7'$"):
        Technology.load("generic7")


def test_generic45_says_that_it_is_not_calibrated():
    assert GENERIC45.calibrated is False
    assert "not calibrated" in GENERIC45.summary


@pytest.mark.parametrize(("old", "new", "message"), [
    ('source = "this test"\nfactors = [[0.5, 3.0', 'source = ""\nfactors = [[0.5, 3.0',
     r"^Price of multiply must state its source, not ''$"),
    ('node = "none"\n', "", r"^Technology file must have the key 'node' in every entry that needs it$"),
    ('kind = "assumed"', 'kind = "felt"', r"^Kind of the price of multiply must be one of measured, .*, not 'felt'$"),
    ("[0.5, 3.0,", "[1.5, 3.0,", r"^Factors of multiply must be \[at most 1, at least 1, reason\], not \[1\.5, 3\.0, "),
    ("pJ = 2.0", "pJ = -2.0", r"^Price of multiply must be a positive number, not -2\.0$"),
    ("[1024, 4096]", "[4096, 1024]", r"^Table sram must have two sizes or more, ascending, with a price each, not "),
    ("pJ = 2.0", "pJ = ", r"^Technology file must have the form of generic45\.toml: "),
])
def test_a_number_without_unit_source_or_sense_is_refused(old, new, message):
    assert old in TOY
    with pytest.raises(TechnologyError, match=message):
        Technology.parse(TOY.replace(old, new, 1))


def test_every_number_of_generic45_names_its_effect():
    assert TEXT.count("\neffect = ") == len(GENERIC45.prices)
