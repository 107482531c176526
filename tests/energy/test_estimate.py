"""Actions are counted as stated, priced as the technology file says, and nothing goes unpriced."""

import math
from dataclasses import replace

import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tilewright.energy.actions import Clock, actions_of, core_actions
from tilewright.energy.energies import sum_energies
from tilewright.energy.estimate import Technology, estimate
from tilewright.energy.prices import Range, TechnologyError
from tilewright.energy.registers import CORE_REGISTERS, registers_of
from tilewright.energy.technology_text import technologies
from tilewright.isa.counters import COUNTERS
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS

GENERIC45, OSU018 = Technology.load("generic45"), Technology.load("osu018")
NOTHING = {counter.name: 0 for counter in COUNTERS}

ABOUT = 'node = "none"\nkind = "assumed"\nsource = "this test"\neffect = "a test"\nabsolute = []\n'
TOY = f"""
name = "toy"
node = "none"
voltage = "1 V"
corner = "typical"
clock_mhz = 100
summary = "for a test"
calibrated = false
use = "tables"
[price.multiply]
pJ = 2.0
node = "none"
kind = "assumed"
source = "this test"
effect = "a product"
relative = [[0.5, 3.0, "first"], [0.5, 1.0, "second"]]
absolute = [[0.5, 2.0, "third"]]
[block.array.multiply]
pJ = 4.0
relative = []
{ABOUT}
[block.lane.leakage]
per_register_nW = 3000.0
relative = []
{ABOUT}
[leakage]
per_register_nW = 1000.0
relative = [[0.5, 2.0, "one"]]
{ABOUT}
[sram]
table = "lstp90"
[sram.energy]
scale = 2.0
relative = [[0.5, 2.0, "one"]]
{ABOUT}
[sram.leakage]
scale = 0.5
relative = []
{ABOUT}
[sram.area]
scale = 3.0
relative = []
{ABOUT}
"""
GATING = f"""
[gating]
remainder = 0.25
relative = []
{ABOUT}
[gated_price]
factor = 1.5
relative = [[0.9, 1.1, "one"]]
{ABOUT}
[block.lane.gating]
remainder = 0.0
relative = []
{ABOUT.replace("assumed", "measured")}
[block.lane.gated_price]
factor = 0.5
relative = []
{ABOUT}
[price.register_toggle]
pJ = 8.0
relative = [[0.5, 2.0, "two"]]
{ABOUT.replace("absolute = []", 'absolute = [[0.25, 4.0, "three"]]')}
"""


SCALED = """
[scaled.register_toggle]
effect = "a toggle"
from = "osu018"
factor = 0.5
node = "none"
source = "this test"
relative = [[0.5, 2.0, "ours"]]
absolute = [[0.25, 4.0, "ours too"]]
"""


CLOCK = Clock(mhz=100)
STILL = dict.fromkeys(ENERGY_BLOCKS, 0)


@pytest.mark.parametrize("machine", WINOGRAD_MACHINES.values(), ids=lambda machine: machine.name)
@pytest.mark.parametrize("name", technologies())
def test_whatever_costs_energy_is_an_action_with_a_price(machine, name):
    technology = Technology.load(name)
    costly = ("tile_slots", "requantized", "activation_read", "activation_written", "weight_read", "weight_written",
              "result_read", "result_written", "memory_read", "memory_written", "cycles", "table_read")

    def cost(counters=None, toggles=None, instructions=0):
        return estimate(actions_of(NOTHING | (counters or {}), machine, instructions, STILL | (toggles or {}), CLOCK),
                        technology)

    assert (cost().total_uj, cost().low_uj, cost().high_uj) == (0, 0, 0)
    for energy in (*(cost({counter: 1000}) for counter in costly),
                   *(cost(toggles={block: 1000}) for block in ENERGY_BLOCKS)):
        total = energy.total
        assert 0 < total.absolute_low_uj <= total.relative_low_uj < total.uj < total.relative_high_uj
        assert total.relative_high_uj <= total.absolute_high_uj
        assert energy.total_uj == pytest.approx(sum(energy.by_component.values()))
    assert cost(instructions=1000).by_component["riscv_core"] > 0


def test_actions_of_base():
    base = WINOGRAD_MACHINES["base"]
    counters = NOTHING | {"cycles": 10, "tile_slots": 3, "requantized": 5, "activation_read": 7,
                          "activation_written": 4, "weight_read": 17, "weight_written": 16, "result_read": 8,
                          "result_written": 9, "memory_read": 24, "memory_written": 11, "table_read": 13}
    actions = actions_of(counters, base, 6, STILL | {"array": 21}, CLOCK)
    expected = {
        "array.register_toggle": 21,
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
    }
    assert {name: actions[name] for name in expected} == expected
    for block, registers in registers_of(base).items():
        assert actions[f"{block}.register_cycle"] == 10 * registers
        assert actions[f"{block}.leakage_ns"] == pytest.approx(100 * registers)   # 10 cycles of 10 ns
    assert actions["activation_buffer.leakage_ns@8192x8"] == pytest.approx(16 * 100)


def test_weights_of_nano_come_in_words_of_its_narrow_bus():
    actions = actions_of(NOTHING | {"weight_written": 16}, WINOGRAD_MACHINES["nano"], 0, STILL, CLOCK)
    assert actions["weight_buffer.write@8192x64"] == 4


def test_core_actions_fetch_every_instruction():
    actions = core_actions(cycles=10, instructions=8, clock=CLOCK, loads=2, stores=1)
    assert actions["riscv_core.instruction"] == 8
    assert actions["riscv_core.read@32768x32"] == 10
    assert actions["riscv_core.write@32768x32"] == 1
    assert actions["riscv_core.register_cycle"] == 10 * CORE_REGISTERS["cv32e40x"]


def test_a_larger_buffer_costs_more_for_the_same_bytes():
    base = WINOGRAD_MACHINES["base"]
    counters = NOTHING | {"activation_read": 10**6}
    small, large = (estimate(actions_of(counters, machine, 0, STILL, CLOCK), GENERIC45).total_uj
                    for machine in (base, replace(base, activation_bytes=1 << 20)))
    assert small < large


def test_counts_times_prices_with_two_ranges_in_the_log_domain():
    energy = estimate({"buffer.multiply": 3_000_000, "array.multiply": 1_000_000}, Technology.parse(TOY))
    assert energy.by_component == {"buffer": pytest.approx(6.0), "array": pytest.approx(4.0)}
    assert energy.total_uj == pytest.approx(10.0)
    total = energy.total
    assert total.relative_low_uj == pytest.approx(6.0 * math.exp(-math.sqrt(2) * math.log(2)) + 4.0)
    assert total.relative_high_uj == pytest.approx(6.0 * 3.0 + 4.0)
    assert total.absolute_low_uj == energy.low_uj == pytest.approx(6.0 * math.exp(-math.sqrt(3) * math.log(2)) + 4.0)
    assert total.absolute_high_uj == energy.high_uj == pytest.approx(
        6.0 * math.exp(math.hypot(math.log(3), math.log(2))) + 4.0)


def test_energies_add_up_component_by_component():
    technology = Technology.parse(TOY)
    first, second = (estimate(actions, technology) for actions in (
        {"a.multiply": 1_000_000}, {"a.multiply": 2_000_000, "b.multiply": 4_000_000}))
    both = sum_energies([first, second])
    assert both.by_component == {"a": pytest.approx(6.0), "b": pytest.approx(8.0)}
    assert both.total.relative_high_uj == pytest.approx(42.0)
    assert sum_energies([]).total_uj == 0


def test_a_block_has_its_own_price_where_it_is_given():
    technology = Technology.parse(TOY)
    assert technology.price("array.multiply").picojoules == 4.0
    assert technology.price("load.multiply").picojoules == 2.0


def test_a_kind_of_array_has_its_own_prices_where_they_are_given():
    own = TOY + TOY[TOY.index("[block.array.multiply]"):TOY.index("[leakage]")].replace(
        "block.array.", 'block."array@plain".').replace("block.lane.", 'block."lane@plain".').replace(
        "4.0", "5.0").replace("3000.0", "7000.0")
    technology = Technology.parse(own)
    plain, inner = technology.of_array("plain"), technology.of_array("inner")
    actions = ("array.multiply", "load.multiply", "lane.leakage_ns", "load.leakage_ns")
    assert [plain.price(each).picojoules for each in actions] == [5.0, 2.0, pytest.approx(7e-3), pytest.approx(1e-3)]
    assert [inner.price(each) for each in actions] == [technology.price(each) for each in actions]
    assert inner.price("array.multiply").picojoules == 4.0


def test_leakage_is_power_times_time():
    technology = Technology.parse(TOY)
    # 1000 registers x 1000 nW for a second: 1 mJ.
    energy = estimate({"array.leakage_ns": 1000 * 10**9}, technology)
    assert energy.total_uj == pytest.approx(1000.0)
    assert energy.total.relative_high_uj == pytest.approx(2000.0)
    assert estimate({"lane.leakage_ns": 1000 * 10**9}, technology).total_uj == pytest.approx(3000.0)
    macro = technology.sram.table.macro(8192, 64)
    leaked = estimate({"buffer.leakage_ns@8192x64": 10**9}, technology).total_uj
    assert leaked == pytest.approx(macro.leakage_uw * 0.5)


@pytest.mark.parametrize(("event", "field"), [("read", "read_pj"), ("write", "write_pj")])
def test_sram_is_priced_by_its_table_times_the_scale(event, field):
    technology = Technology.parse(TOY)
    price = technology.price(f"buffer.{event}@8192x64")
    assert price.picojoules == pytest.approx(2.0 * getattr(technology.sram.table.macro(8192, 64), field))
    assert (price.relative.low, price.relative.high) == (pytest.approx(0.5), pytest.approx(2.0))
    assert technology.sram.area_um2(8192, 64) == pytest.approx(3.0 * technology.sram.table.macro(8192, 64).area_um2)
    widest = technology.sram.table.bits[-1]
    side_by_side = technology.sram.area_um2(4 * 8192, 4 * widest)
    assert side_by_side == pytest.approx(4 * technology.sram.area_um2(8192, widest))


def test_main_memory_is_the_part_that_was_chosen():
    lpddr4, sdr = (Technology.parse(TOY, dram=part) for part in ("lpddr4", "sdr"))
    assert lpddr4.price("main_memory.dram_byte").picojoules == 64.0
    assert sdr.price("main_memory.dram_byte").picojoules > 1000
    assert Technology.parse(TOY).dram == lpddr4.dram
    with pytest.raises(TechnologyError, match=r"Main memory.*not 'hbm9'"):
        Technology.parse(TOY, dram="hbm9")


def test_clock_gating_leaves_a_share_of_the_registers_clocked():
    gated = Technology.parse(TOY + GATING)
    assert gated.ungated("array") == 0.25
    assert gated.ungated("lane") == 0.0
    with pytest.raises(TechnologyError, match=r"toy .*gated_price"):
        Technology.parse(TOY).ungated("array")
    with pytest.raises(TechnologyError, match=r"toy .*gated_price"):
        Technology.parse(TOY).with_gates(["array.register_toggle"])


def test_with_clock_gates_a_toggle_carries_what_is_clocked_with_it():
    plain = Technology.parse(TOY + GATING)
    gated = plain.with_gates(["array.register_toggle", "lane.register_toggle"])
    assert plain.price("lane.register_toggle").picojoules == gated.price("load.register_toggle").picojoules == 8.0
    assert gated.price("array.register_toggle").picojoules == 12.0
    assert gated.price("lane.register_toggle").picojoules == 4.0
    # The range is that of the model with gates, beside what is absolute in the price.
    assert gated.price("array.register_toggle").relative == Range(0.9, 1.1)
    assert gated.price("array.register_toggle").absolute == Range(0.9, 1.1).with_(Range(0.25, 4.0))


@pytest.mark.parametrize("action", ["array.divide", "multiply", "array.multiply@1x2", "buffer.read", "buffer.erase@1x2",
                                    "buffer.read@1024", "buffer.read@x8", "buffer.read@-1x8"])
def test_an_unpriced_action_is_an_error(action):
    message = rf"^Technology toy prices multiply, array.multiply, leakage_ns, .*, not '{action}'$"
    with pytest.raises(TechnologyError, match=message):
        estimate({action: 1}, Technology.parse(TOY))


def test_unknown_technology():
    with pytest.raises(TechnologyError, match=r"Technology.*not 'generic7'"):
        Technology.load("generic7")


@pytest.mark.parametrize("name", technologies())
def test_every_technology_says_what_it_is_good_for(name):
    technology = Technology.load(name)
    assert technology.name == name
    assert technology.use != "tables" or not technology.calibrated


@pytest.mark.parametrize(("old", "new", "message"), [
    ('source = "this test"\neffect = "a product"', 'source = ""\neffect = "a product"',
     r"Entry multiply .*not ''$"),
    ('node = "none"\nkind', "kind", r"Entry multiply .*but node is missing$"),
    ('kind = "assumed"', 'kind = "felt"', r"Kind of multiply .*not 'felt'$"),
    ("[0.5, 3.0,", "[1.5, 3.0,", r"Factors relative of multiply .*not \[1"),
    ("[0.5, 3.0,", "[3.0, 0.5,", r"Factors relative of multiply .*not \[3\.0, 0\.5, 'first'\]$"),
    ("[0.5, 3.0,", "[nan, 3.0,", r"Factors relative of multiply .*not \[nan,"),
    ("[0.5, 3.0,", "[0.5, inf,", r"Factors relative of multiply .*not \[0\.5, inf"),
    ("[0.5, 2.0, \"third\"]", "[0.5, 2.0, \"\"]", r"Factors absolute of multiply .*not \[0\.5, 2\.0, ''\]$"),
    ("[[0.5, 2.0, \"third\"]]", "0.5", r"Factors absolute of multiply .*not 0\.5$"),
    ("pJ = 2.0", "pJ = -2.0", r"pJ of multiply .*not -2\.0$"),
    ("pJ = 2.0", "pJ = nan", r"pJ of multiply .*not nan$"),
    ("pJ = 2.0", "pJ = 0.0", r"pJ of multiply .*not 0\.0$"),
    ("pJ = 2.0", "pJ = true", r"pJ of multiply .*not True$"),
    ("pJ = 2.0", "pJ = '2'", r"pJ of multiply .*not '2'$"),
    ("pJ = 2.0", "watts = 2.0", r"Entry multiply .*but pJ is missing$"),
    ("pJ = 2.0", "pJ = 2.0\nunit = 'J'", r"Entry multiply .*not unit$"),
    ("pJ = 2.0", "pJ = ", r"^Technology file must be TOML: "),
    ("clock_mhz = 100", "clock_mhz = 0", r"Clock .*MHz .*positive number"),
    ("calibrated = false", "calibrated = 'no'", r"Technology file .*not 'no'$"),
    ('use = "tables"', 'use = "show"', r"Technology file .*not 'show'$"),
    ('corner = "typical"\n', "", r"Technology file .*but corner is missing$"),
    ('table = "lstp90"', 'table = "lstp7"', r"Table of sram .*lstp90.*not 'lstp7'$"),
    ("[sram.leakage]", "[sram.loss]", r"Entry sram .*but leakage is missing$"),
    ("[leakage]", "[loss]", r"Technology toy .*but leakage is missing$"),
    ("[block.lane.leakage]", "[blocks.lane.leakage]", r"Technology toy .*not blocks$"),
])
def test_a_number_without_unit_source_or_sense_is_refused(old, new, message):
    assert old in TOY
    with pytest.raises(TechnologyError, match=message):
        Technology.parse(TOY.replace(old, new, 1))


def test_a_share_of_clocked_registers_beyond_one_is_refused():
    with pytest.raises(TechnologyError, match=r"remainder of gating .*not 1\.25$"):
        Technology.parse(TOY + GATING.replace("remainder = 0.25", "remainder = 1.25"))


def test_prices_of_one_event_are_another_technologys_times_a_factor():
    ours, theirs = Technology.parse(TOY + SCALED).entries, OSU018.entries
    for name in ("register_toggle", *(f"{block}.register_toggle" for block in ENERGY_BLOCKS)):
        assert ours[name].value == 0.5 * theirs[name].value
        assert ours[name].kind == "scaled"
        assert ours[name].relative == theirs[name].relative.with_(Range(0.5, 2.0))
        assert ours[name].own == Range(0.25, 4.0)
        assert " pJ in osu018 x 0.5: this test" in ours[name].source
        assert ours[name].reasons[-1] == "absolute 0.25 to 4: ours too"
        assert ours[name].reasons[0] in theirs[name].reasons
    assert set(ours) == {"multiply", "array.multiply", *(name for name in theirs if name.endswith("register_toggle"))}


def test_a_price_of_its_own_stays_beside_scaled_ones():
    own = TOY + SCALED + f'[block.array.register_toggle]\npJ = 7.0\nrelative = []\n{ABOUT}'
    assert Technology.parse(own).entries["array.register_toggle"].value == 7.0


def test_shares_are_scaled_too_but_not_beyond_one():
    shares = SCALED.replace("register_toggle", "remainder")
    found, theirs = Technology.parse(TOY + shares + SCALED.replace("register_toggle", "gated_price")), OSU018
    assert found.ungated("array") == 0.5 * theirs.ungated("array")
    assert found.ungated("anything") == 0.5 * theirs.ungated("anything")
    for block in ("array", ""):
        assert found.gated_prices[block].value == 0.5 * theirs.gated_prices[block].value
    with pytest.raises(TechnologyError, match=r"remainder .*not 1\.[0-9]+$"):
        Technology.parse(TOY + shares.replace("factor = 0.5", "factor = 3.0"))


@pytest.mark.parametrize(("old", "new", "message"), [
    ('from = "osu018"', 'from = "osu180"', r"scaled\.register_toggle .*under from"),
    ('from = "osu018"\n', "", r"scaled\.register_toggle .*under from"),
    ('from = "osu018"', 'from = "generic45"', r"own, not from 'gen"),
    ("factor = 0.5", "factor = -1.0", r"scaled\.register_toggle .*positive number"),
    ("factor = 0.5\n", "", r"scaled\.register_toggle .*but factor is missing$"),
    ('source = "this test"\n', "", r"scaled\.register_toggle .*but source is missing$"),
    ("factor = 0.5", "factor = 0.5\npJ = 1", r"Section scaled\.register_.* .*not pJ$"),
    ("register_toggle", "erasure", r"scaled\.erasure .*that osu018 has"),
])
def test_a_section_that_scales_nothing_sensible_is_refused(old, new, message):
    assert old in SCALED
    with pytest.raises(TechnologyError, match=message):
        Technology.parse(TOY + SCALED.replace(old, new, 1))
