"""Designs as flags."""

from dataclasses import replace

import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa.dram.dram import DramTiming, dram_named
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.models import builtin, data
from tilewright.runtime.design.design_error import DesignError
from tilewright.runtime.design.design_flags import clock_of, design_of, memory_of
from tilewright.runtime.session import InferenceSession

LENET5 = builtin("lenet5")
IMAGE = {"image": data.samples().images[:1]}


@pytest.mark.parametrize("name", ["base", "large"])
def test_machines_for_depthwise_layers_have_names(name):
    machine = design_of(f"{name}_depthwise").machine
    assert machine == replace(PRESETS[name], name=f"{name}_depthwise", channel_kernels=True, four_patches=True)
    assert machine.takes_four_patches
    assert design_of(f"{name}_depthwise,queue_depth=8").machine.takes_four_patches


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_itself(name):
    assert design_of(name).machine == PRESETS[name]


def test_a_preset_with_changes():
    machine = design_of("base, lanes=8,clusters=2, weight_bytes=32KiB").machine
    assert (machine.lanes, machine.clusters, machine.weight_bytes) == (8, 2, 32768)
    assert machine.activation_bytes == PRESETS["base"].activation_bytes
    assert design_of(machine.name).machine == machine, "its name states it"


def test_a_machine_without_units():
    machine = design_of("nano,array=plain,value_tables=false,chaining=off").machine
    assert (machine.array, machine.value_tables, machine.chaining, machine.max_pooling) == ("plain", False, False, True)


def test_four_patches_bring_the_kernels_by_channel_that_they_need():
    assert design_of("base,four_patches=true").machine.takes_four_patches
    for text in ("nano,four_patches=true", "base,four_patches=true,channel_kernels=false"):
        with pytest.raises(DesignError, match="four_patches"):
            design_of(text)


def test_changes_alone_are_of_the_default_machine():
    assert design_of("bus_bytes=16").machine.same_as(design_of("base,bus_bytes=16").machine)


def test_a_file_with_changes(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[machine]\nlanes = 8\n[memory]\nlatency_cycles = 50\n")
    design = design_of(f"{path},queue_depth=8")
    assert (design.machine.lanes, design.machine.queue_depth, design.timing.latency_cycles) == (8, 8, 50)


def test_memory_states_what_differs():
    base = PRESETS["base"]
    assert memory_of("latency=100,bytes=4", base) == MemoryTiming(latency_cycles=100, bytes_per_cycle=4)
    assert memory_of("latency=100", base) == MemoryTiming(latency_cycles=100, bytes_per_cycle=base.bus_bytes)


@pytest.mark.parametrize(("text", "mhz"), [
    ("80MHz", 80), ("80", 80), ("1.2GHz", 1200), ("500 kHz", 0.5), ("80mhz", 80)])
def test_clock(text, mhz):
    assert clock_of(text) == pytest.approx(mhz)


@pytest.mark.parametrize(("text", "fact"), [
    ("huge", "huge"), ("", "base"), ("base,lanse=8", "lanes"), ("base,lanes", "lanes"), ("base,lanes=6", "6"),
    ("base,lanes=1e3", "1e3"), ("base,lanes=4,lanes=8", "lanes"), ("base,", "key=number"), ("nothing.toml", "nothing"),
    ("nano,array=systolic", "systolic"), ("nano,chaining=2", "true or false"), ("nano,value_table=no", "value_tables"),
    ("base,lanes=99999999999999", "99999999999999"), ("base,clusters=4,lanes=2", "clust"),
])
def test_wrong_machines_are_refused(text, fact):
    with pytest.raises(DesignError, match=fact):
        design_of(text)


def test_memory_may_be_dram_at_the_clock_of_the_design():
    slow, quick = (design_of("nano", memory="dram=ddr3l-1600x16", clock=clock) for clock in ("80MHz", "400MHz"))
    assert slow.memory == DramTiming.of(dram_named("ddr3l-1600x16", 80))
    assert quick.memory == DramTiming.of(dram_named("ddr3l-1600x16", 400))
    assert replace(slow, pricing=quick.pricing) == replace(quick, machine=slow.machine)
    technology = design_of("nano", memory="dram=sdr-133x16", technology="sky130")
    assert technology.memory == DramTiming.of(dram_named("sdr-133x16", technology.mhz))


def test_memory_may_stall_at_random():
    design = design_of("base", memory="dram=sdr-133x16,stalls=20,seed=3", clock="80MHz")
    assert design.memory == DramTiming.of(dram_named("sdr-133x16", 80), stall_percent=20, seed=3)
    assert memory_of("stalls=10", PRESETS["nano"]) == MemoryTiming(bytes_per_cycle=4, stall_percent=10)


@pytest.mark.parametrize(("text", "facts"), [
    ("dram=ddr9", ("dram", "'ddr9'", "ddr3l-1600x16")), ("dram=", ("dram", "''", "sdr-133x16")),
    ("dram=sdr-133x16,latency=4", ("latency_cycles", "4", "dram")),
    ("dram=sdr-133x16,bytes=2", ("bytes_per_cycle", "2", "dram")),
    ("stalls=91", ("stall_percent", "91", "0..90")), ("stalls=many", ("stalls", "many")), ("seed=-1", ("seed", "-1")),
])
def test_what_is_wrong_with_dram_and_stalls_is_named(text, facts):
    with pytest.raises(DesignError) as error:
        memory_of(text, PRESETS["base"])
    assert all(fact in str(error.value) for fact in facts), str(error.value)


@pytest.mark.parametrize("text", [
    "", "latency", "latency=0", "bytes=0", "latency=-1", "latenzy=3", "latency=3,latency=4"])
def test_wrong_memories_are_refused(text):
    with pytest.raises(DesignError, match="Memory"):
        memory_of(text, PRESETS["base"])


@pytest.mark.parametrize("text", ["", "0", "-80MHz", "fast", "80 THz", "nan", "99GHz"])
def test_wrong_clocks_are_refused(text):
    with pytest.raises(DesignError, match="Clock"):
        clock_of(text)


def test_a_session_takes_what_the_flag_takes():
    plain, wide = (InferenceSession(LENET5, machine) for machine in ("base", "base,bus_bytes=16,lanes=8"))
    for session in (plain, wide):
        session.run(None, IMAGE)
    assert wide.report.cycles < plain.report.cycles
    assert wide.report.design["machine"]["lanes"] == 8
    assert wide.report.milliseconds == wide.report.cycles / 1000 / wide.report.clock_mhz


def test_a_session_takes_a_design_with_memory_and_clock(tmp_path):
    path = tmp_path / "slow.toml"
    path.write_text("[memory]\nlatency_cycles = 200\n[clock]\nmhz = 50\n")
    plain, slow = InferenceSession(LENET5, "base"), InferenceSession(LENET5, str(path))
    for session in (plain, slow):
        session.run(None, IMAGE)
    assert slow.report.cycles > plain.report.cycles
    assert (slow.report.memory.latency_cycles, slow.report.clock_mhz) == (200, 50)
    assert slow.report.milliwatts == pytest.approx(slow.report.energy.total_uj / slow.report.milliseconds)


@pytest.mark.parametrize(("text", "lanes", "post_lanes", "clusters"), [
    ("base,array=winograd", 4, 4, 1), ("base,array=plain", 4, 4, 1), ("base,array=inner", 8, 8, 1),
    ("nano,array=inner", 2, 1, 1), ("nano,array=winograd_inner", 2, 1, 1), ("large,array=plain", 16, 16, 4),
    ("base,array=plain,lanes=8", 8, 8, 2)])
def test_another_array_has_as_many_multipliers_in_its_lanes(text, lanes, post_lanes, clusters):
    machine = design_of(text).machine
    assert (machine.lanes, machine.post_lanes, machine.clusters) == (lanes, post_lanes, clusters)


def test_the_base_of_one_product_a_multiplication_is_still_there():
    assert design_of("base,array=winograd").machine.same_as(WINOGRAD_MACHINES["base"])
