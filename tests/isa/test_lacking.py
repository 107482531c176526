"""Units that a machine lacks: by variant and by operand; a machine of every unit lacks nothing."""

from dataclasses import fields, replace

import pytest

from tilewright.isa.encoding import INSTRUCTIONS
from tilewright.isa.lacking import WINOGRAD, has_unit, lacking, lacks, variants_of
from tilewright.isa.machine import ARRAYS, INTEGRATION, LIMITS, PRESETS, SWITCHES, Machine

NANO = replace(PRESETS["nano"], lanes=4, row_unit=True, coded_weights=True, channel_kernels=True, wide_words=True,
               four_patches=True)
ROWS = {"act.rows", "act.set_rows", "act.set_norm"}
CODED = {"ldw.coded_main", "ldw.coded_ninths", "ldw.set_coded"}
FOUR = {"conv23.run_four_patches"}
BY_CHANNEL = {"conv23.run_by_channel", *FOUR}
WORDS = {"conv.set_planes", "pool.set_words"}
EVERY = tuple((instruction, variant) for instruction in INSTRUCTIONS for variant in instruction.variants)


def test_every_parameter_has_limits_or_is_a_unit():
    assert {field.name for field in fields(Machine)} == {"name", "array", *LIMITS, *SWITCHES, *INTEGRATION}


@pytest.mark.parametrize("machine", PRESETS.values(), ids=lambda machine: machine.name)
def test_presets_have_every_variant_but_those_of_extra_units(machine):
    missing = {f"{i.mnemonic}.{v.name}" for i, v in EVERY if (i, v) not in variants_of(machine)}
    assert missing == ROWS | CODED | BY_CHANNEL | WORDS


@pytest.mark.parametrize(("change", "missing"), [
    ({"array": "plain"}, {"conv23.run", "conv23.run_without_reuse", *BY_CHANNEL, "lda.blocked", "lda.fill_blocked",
                          "ldw.ninths", "ldw.coded_ninths", "sta.blocked"}),
    ({"column_reuse": False}, {"conv23.run"}),
    ({"paired_rows": False}, set()),
    ({"value_tables": False}, {"ldw.table", *ROWS}),
    ({"residual_adder": False}, {"lda.residual", "act.set_residual_scale", "act.set_residual_offset"}),
    ({"max_pooling": False}, {"pool.window"}),
    ({"whole_sums": False}, set()),
    ({"chaining": False}, {"sta.linear", "sta.blocked"}),
    ({"row_unit": False}, ROWS),
    ({"coded_weights": False}, CODED),
    ({"channel_kernels": False}, BY_CHANNEL),
    ({"wide_words": False}, WORDS),
    ({"four_patches": False}, FOUR),
    ({"tiles": 2, "lanes": 2, "clusters": 1}, FOUR),    # four patches need four lanes
])
def test_a_unit_left_out_takes_its_variants_along(change, missing):
    machine = replace(NANO, **change)
    found = {f"{instruction.mnemonic}.{variant.name}" for instruction, variant in EVERY}
    assert found - {f"{i.mnemonic}.{v.name}" for i, v in variants_of(machine)} == missing


@pytest.mark.parametrize(("change", "command", "operand"), [
    ({"array": "plain"}, ("act", "run"), "winograd"),
    ({"residual_adder": False}, ("act", "run"), "residual"),
    ({"max_pooling": False}, ("act", "run"), "pooled"),
    ({"value_tables": False}, ("act", "run"), "table"),
    ({"whole_sums": False}, ("act", "run"), "whole"),
    ({"paired_rows": False}, ("conv", "set_kernel_step"), "pair_words"),
    ({"channel_kernels": False}, ("act", "run"), "shared"),
    ({"wide_words": False}, ("act", "run"), "wide"),
])
def test_operands_that_need_a_unit_must_be_zero(change, command, operand):
    machine = replace(NANO, **change)
    assert lacks(machine, *command) is None
    assert lacking(machine, *command, {operand: 0}) is None
    unit = lacking(machine, *command, {operand: 1})
    assert unit is not None
    assert not has_unit(machine, unit)
    assert lacking(NANO, *command, {operand: 1}) is None


def test_a_plain_array_has_no_columns_to_reuse():
    plain = replace(Machine(), array="plain")
    assert plain.column_reuse
    assert not plain.reuses_columns
    assert not has_unit(plain, WINOGRAD)


@pytest.mark.parametrize("change", [{"array": "systolic"}, {"array": True}, {"value_tables": 1}, {"chaining": "no"}])
def test_a_machine_refuses_other_arrays_and_truths(change):
    (name,) = change
    with pytest.raises(ValueError, match=name):
        Machine(**change)


def test_every_cluster_has_a_weight_memory():
    assert Machine(lanes=8, clusters=8, weight_bytes=2048).weight_words == 16
    with pytest.raises(ValueError, match="weight_bytes"):
        Machine(lanes=16, clusters=16, weight_bytes=2048)


def test_every_kind_of_array_makes_a_machine():
    assert all(Machine(array=name).array == name for name in ARRAYS)
