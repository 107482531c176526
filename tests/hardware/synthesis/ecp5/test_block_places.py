"""Multipliers and block RAMs of an array with a lane of xi get places, each its own, and only where all find room."""

import json
import re

import pytest

from tilewright.hardware.synthesis.ecp5.block_places import (
    lane_places,
    memory_places,
    places_of,
    unit_places,
    with_places,
)
from tilewright.hardware.synthesis.targets import target_named

SITES = target_named("ecp5-85k").sites


def names(lanes, *, xi=True, others=40):
    """Return the multipliers of an array, as Yosys names them, and of units behind it."""
    return [*(f"coprocessor.mac.cluster_0.lane_{lane}.tile_factors.sums.pair_product[{k}].place.block"
              for lane in range(lanes) for k in range(16)),
            *(f"coprocessor.mac.xi.products_31._{k + 1}_MULT18X18D_P9" for k in range(16 * xi)),
            *(f"coprocessor.post.requantize_{k}.lower_product.place.block" for k in range(others))]


def where(place):
    x, y, index = (int(text) for text in re.fullmatch(r"X(\d+)/Y(\d+)/MULT18_(\d)", place).groups())
    return x, y, index


def test_each_lane_lies_in_one_row_within_four_blocks():
    places = lane_places(names(4), SITES)
    assert len(places) == 80 == len(set(places.values()))
    assert not any(".post." in name for name in places)
    for lane in ("lane_0.", "lane_1.", "lane_2.", "lane_3.", ".xi."):
        found = [where(place) for name, place in places.items() if lane in name]
        assert len(found) == 16
        assert len({y for _, y, _ in found}) == 1
        columns = {x - index for x, _, index in found}
        assert len(columns) == 4
        first = SITES.columns.index(min(columns))
        assert columns == set(SITES.columns[first:first + 4])


def test_a_column_of_products_shares_a_block():
    places = lane_places(names(1, xi=False), SITES)
    for column in range(4):
        blocks = {where(place)[0] - where(place)[2] for name, place in places.items()
                  if int(re.search(r"\[(\d+)\]", name)[1]) % 4 == column}
        assert len(blocks) == 1


def test_neighbours_in_the_chain_are_neighbours_on_the_device():
    places = lane_places(names(8, others=12), SITES)
    centre = {}
    for lane in range(8):
        found = [where(place) for name, place in places.items() if f"lane_{lane}." in name]
        centre[lane] = sum(x for x, _, _ in found) / 16, found[0][1]
    for lane in range(7):
        (x, y), (next_x, next_y) = centre[lane], centre[lane + 1]
        assert abs(x - next_x) < 45
        assert abs(y - next_y) <= 24


@pytest.mark.parametrize("asked", [names(9), names(8, others=100)], ids=["too many lanes", "too many multipliers"])
def test_nothing_has_a_place_where_not_all_lanes_find_room(asked):
    assert lane_places(asked, SITES) == {}


def memories(weights=36, banks=16):
    """Return the block RAMs of an array and of the units behind it, as Yosys names them."""
    return [*(f"coprocessor.mac.cluster_0.weights.low_odd.0.{k}" for k in range(weights)),
            *(f"coprocessor.mac.buffer.bank_{bank}.0.{k}" for bank in range(banks) for k in range(4)),
            *(f"coprocessor.post.{unit}.0.{k}" for unit in ("buffer.banks.bank_1", "parameters.memory", "tables.copy_1")
              for k in range(16))]


def test_weights_lie_between_the_lanes_and_each_memory_has_a_place_of_its_own():
    places = memory_places(memories(), SITES)
    assert len(places) == 148 == len(set(places.values()))
    rows = {unit: {place.split("/")[1] for name, place in places.items() if unit in name}
            for unit in (".weights.", "mac.buffer", ".post.")}
    assert rows == {".weights.": {"Y22"}, "mac.buffer": {"Y22", "Y46"}, ".post.": {"Y70"}}


@pytest.mark.parametrize("asked", [memories(weights=53), memories(banks=32)], ids=["weights", "activations"])
def test_no_memory_has_a_place_where_not_all_find_room(asked):
    assert memory_places(asked, SITES) == {}


def test_a_unit_behind_the_array_has_a_block_of_its_own_beside_the_lanes():
    units = [f"coprocessor.post.{unit}.{part}_product.place.block"
             for unit in (*(f"requantize_{k}" for k in range(8)), "residual_9.add_0", "residual_9.add_1")
             for part in ("a", "b", "c", "d")]
    lanes = lane_places(names(4, others=0), SITES)
    places = unit_places([*lanes, *units], lanes.values(), SITES)
    assert places.keys() == set(units)
    assert len(set(places.values())) == len(units)
    assert not set(places.values()) & set(lanes.values())
    for unit in units[::4]:
        blocks = {where(place)[0] - where(place)[2] for name, place in places.items()
                  if name.startswith(unit.removesuffix("a_product.place.block"))}
        assert len(blocks) == 1


def netlist(folder, cells):
    path = folder / "netlist.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": {
        name: {"type": kind, "attributes": {}} for name, kind in cells.items()}}}}))
    return path


def test_the_netlist_carries_the_places(tmp_path):
    multipliers = names(1, others=0)
    path = netlist(tmp_path, dict.fromkeys(multipliers, "MULT18X18D") | dict.fromkeys(memories(), "DP16KD")
                   | {"sum": "LUT4"})
    written = json.loads(with_places(path, places_of(path, SITES)))["modules"]["top"]["cells"]
    assert {name: cell["attributes"]["BEL"] for name, cell in written.items() if cell["attributes"]} == {
        **lane_places(multipliers, SITES), **memory_places(memories(), SITES)}


def test_other_arrays_and_other_devices_get_no_places(tmp_path):
    assert places_of(netlist(tmp_path, dict.fromkeys(names(4, xi=False), "MULT18X18D")), SITES) == {}
    inner = [name.replace("tile_factors", "factors") for name in names(4)]
    assert places_of(netlist(tmp_path, dict.fromkeys(inner, "MULT18X18D")), SITES) == {}
    assert places_of(netlist(tmp_path, dict.fromkeys(names(4), "MULT18X18D")),
                     target_named("ecp5-25k").sites) == {}
