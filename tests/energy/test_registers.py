"""Registers of each block, which module belongs to which, and what cannot count toggles."""

from dataclasses import replace

import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tilewright.energy.registers import count_fresh, registers_of
from tilewright.isa.machine import PRESETS, UNITS
from tilewright.sim.verilator.build import build_simulator
from tilewright.sim.verilog.energy_blocks import energy_block_of


@pytest.mark.parametrize("name", ["nano", *(pytest.param(name, marks=pytest.mark.slow) for name in PRESETS
                                            if name != "nano")])
def test_the_committed_registers_are_those_of_the_hardware(name):
    assert registers_of(PRESETS[name]) == count_fresh(PRESETS[name]), "run python -m tilewright.energy.registers"


def test_activity_of_a_core_alone_is_refused():
    with pytest.raises(ValueError, match=r"Activity .*core alone"):
        build_simulator(None, activity=True)


@pytest.mark.parametrize(("module", "block"), [
    ("coprocessor", "control"), ("coprocessor.adapter.committed", "control"), ("coprocessor.coprocessor", "control"),
    ("coprocessor.coprocessor.counters$354", "control"), ("coprocessor.coprocessor.load.writer", "load"),
    ("coprocessor.coprocessor.loader", "control"), ("coprocessor.coprocessor.store.record$99", "store"),
    ("coprocessor.coprocessor.mac", "sequencer"), ("coprocessor.coprocessor.mac.sequencer.walker", "sequencer"),
    ("coprocessor.coprocessor.mac.buffer", "activation_buffer"), ("coprocessor.coprocessor.mac.transform", "array"),
    ("coprocessor.coprocessor.mac.xi.products", "array"),
    ("coprocessor.coprocessor.mac.cluster_3.lane_2.multipliers", "array"),
    ("coprocessor.coprocessor.mac.cluster_3.weights", "weight_buffer"),
    ("coprocessor.coprocessor.post.requantize_0", "post_processing"),
])
def test_modules_belong_to_blocks(module, block):
    assert energy_block_of(module) == block


LESS = replace(PRESETS["nano"], activation_bytes=4096, weight_bytes=4096, result_bytes=1024, parameter_channels=16,
               queue_depth=4, name="less")


@pytest.mark.parametrize("lacking", [
    {"value_tables": False, "residual_adder": False, "chaining": False},
    {"array": "inner", "lanes": 8, "post_lanes": 2, "column_reuse": False},
    {"array": "winograd_inner", "lanes": 8, "post_lanes": 2, "parameter_channels": 64},
    {"row_unit": True},
    pytest.param({"array": "plain", **dict.fromkeys(UNITS, False)}, marks=pytest.mark.slow)],
    ids=["units", "inner products", "pairs of channels", "rows", "all"])
def test_registers_of_a_machine_that_leaves_out_units_are_near_those_counted(lacking):
    less = replace(LESS, **lacking)
    assert sum(registers_of(less).values()) == pytest.approx(sum(count_fresh(less).values()), rel=0.06)


@pytest.mark.slow
def test_kernels_by_channel_add_the_registers_counted():
    less = replace(LESS, array="winograd_inner", lanes=8, clusters=2, parameter_channels=64)
    more = replace(less, channel_kernels=True)
    assert {block: count - registers_of(less)[block] for block, count in registers_of(more).items()} == {
        block: count - count_fresh(less)[block] for block, count in count_fresh(more).items()}


@pytest.mark.slow
@pytest.mark.parametrize(("array", "lanes", "clusters"), [("winograd_inner", 16, 2), ("winograd", 4, 1)])
def test_four_patches_add_the_registers_counted(array, lanes, clusters):
    less = replace(LESS, array=array, lanes=lanes, clusters=clusters, tiles=4, parameter_channels=64,
                   channel_kernels=True)
    more = replace(less, four_patches=True)
    assert more.takes_four_patches
    assert {block: count - registers_of(less)[block] for block, count in registers_of(more).items()} == {
        block: count - count_fresh(less)[block] for block, count in count_fresh(more).items()}


@pytest.mark.slow
@pytest.mark.parametrize("floats", [True, False])
def test_requantisation_in_whole_numbers_adds_the_registers_counted(floats):
    less = replace(LESS, lanes=2, post_lanes=2, parameter_channels=64)
    more = replace(less, integer_requantise=True, float_requantise=floats)
    assert {block: count - registers_of(less)[block] for block, count in registers_of(more).items()} == {
        block: count - count_fresh(less)[block] for block, count in count_fresh(more).items()}


def test_a_row_unit_adds_registers_to_post_processing_alone():
    for machine in (PRESETS["base"], LESS):
        less, more = registers_of(machine), registers_of(replace(machine, row_unit=True))
        assert {block for block in less if less[block] != more[block]} == {"post_processing"}
        assert more["post_processing"] > less["post_processing"] + 400


def test_no_unit_that_is_left_out_adds_registers():
    for preset in WINOGRAD_MACHINES.values():
        whole = registers_of(preset)
        for lacking in ({"array": "plain", "column_reuse": False}, *({unit: False} for unit in UNITS)):
            assert all(count <= whole[block] for block, count in registers_of(replace(preset, **lacking)).items())
