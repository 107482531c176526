"""Machines that the area model is fitted to: enough, all different, and each parameter at more than one value."""

from dataclasses import replace

from tilewright.hardware.area_model.designs import FITTED_MACHINES, designs
from tilewright.isa.machine import ARRAYS, EXTRA_UNITS, LIMITS, PRESETS, UNITS


def test_there_are_enough_and_no_two_are_alike():
    machines = [replace(each, name="") for each in designs()]
    assert len(set(machines)) == len(machines) == len(FITTED_MACHINES) + len(PRESETS) >= 24
    assert len({each.name for each in designs()}) == len(machines)


def test_every_array_and_unit_is_there_and_absent():
    assert {each.array for each in FITTED_MACHINES} == set(ARRAYS)
    for unit in UNITS:
        if unit in EXTRA_UNITS:  # counted by themselves: area_fit has never seen one
            continue
        assert {getattr(each, unit) for each in FITTED_MACHINES if each.winograd or unit != "column_reuse"} == {
            True, False}, unit


def test_every_size_has_several_values():
    for name in LIMITS:
        assert len({getattr(each, name) for each in FITTED_MACHINES}) >= 3, name
