"""Machines that the area model is fitted to are valid, the same each time, and all different."""

from dataclasses import replace

from tilewright.hardware.area_model.designs import designs
from tilewright.isa.machine import PRESETS


def test_a_longer_draw_begins_with_the_shorter_one():
    assert designs(12)[:len(PRESETS) + 5] == designs(5)


def test_every_machine_differs_from_the_others():
    machines = [replace(each, name="") for each in designs(27)]
    assert len(set(machines)) == len(PRESETS) + 27


def test_half_of_them_may_leave_out_units():
    drawn = designs(27)[len(PRESETS):]
    assert {each.array for each in drawn[::2]} == {"winograd"}
    assert any(not each.value_tables for each in drawn[1::2])
    assert all(each.value_tables for each in drawn[::2])
