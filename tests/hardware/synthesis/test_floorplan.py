"""The floorplan shows each cell where nextpnr put it, in the colour of its block."""

import json
import xml.etree.ElementTree as ElementTree

import pytest

from tests.cli.test_app import refused
from tilewright.hardware.synthesis.cached_steps import SynthesisError
from tilewright.hardware.synthesis.floorplan import floorplan, placed_cells
from tilewright.hardware.synthesis.picture import PARTS
from tilewright.hardware.synthesis.synthesis_report import PlacedCell

BLOCKS = {"a": "mac: lanes", "b": "mac: lanes", "c": "load", "ram": "mac: activation buffer"}


def written(folder, **places):
    path = folder / "placed.json"
    cells = {name: {"attributes": {"NEXTPNR_BEL": place} if place else {}} for name, place in places.items()}
    path.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    return path


def squares(picture):
    """Return colour and tooltip of each rectangle that has one."""
    found = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}rect")
    return [(each.get("fill"), each[0].text) for each in found if len(each)]


def test_a_tile_has_the_colour_of_most_of_its_cells(tmp_path):
    path = written(tmp_path, a="X3/Y4/SLICEA.LUT0", b="X3/Y4/SLICEB.LUT1", c="X3/Y4/SLICEC.FF0", ram="X8/Y9/EBR_R9C8",
                   port="")
    cells = placed_cells(path, BLOCKS.__getitem__)
    assert {(each.x, each.y, each.block) for each in cells} == {
        (3, 4, "mac: lanes"), (3, 4, "load"), (8, 9, "mac: activation buffer")}
    shown = squares(floorplan(cells, "nano & <co>"))
    assert (PARTS["mac: lanes"], "mac: lanes, row 4: 3 cells") in shown
    assert (PARTS["mac: buffers"], "block RAM: mac: activation buffer") in shown


def test_neighbours_of_a_row_are_one_stretch():
    cells = [PlacedCell(x, y, "SLICEA.LUT0", block) for x, y, block in (
        (3, 4, "load"), (4, 4, "load"), (5, 4, "store"), (6, 4, "load"), (8, 4, "load"), (3, 5, "load"))]
    stretches = {(each.get("x"), each.get("y"), each.get("width"), each[0].text) for each in ElementTree.fromstring(
        floorplan(cells, "nano")).iter("{http://www.w3.org/2000/svg}rect") if len(each)}
    row, next_row = "76", "85"
    assert stretches == {("31", row, "17", "load, row 4: 2 cells"), ("49", row, "8", "store, row 4: 1 cells"),
                         ("58", row, "8", "load, row 4: 1 cells"), ("76", row, "8", "load, row 4: 1 cells"),
                         ("31", next_row, "8", "load, row 5: 1 cells")}


def test_a_design_without_places_is_refused(tmp_path):
    with pytest.raises(SynthesisError, match=r"must have cells with places"):
        placed_cells(written(tmp_path, a=""), BLOCKS.__getitem__)


@pytest.mark.parametrize("options", [("--target", "sky130"), ("--target", "ecp5-25k", "--no-place")])
def test_what_is_not_placed_has_no_floorplan(tmp_path, options):
    assert "needs a placement" in refused(2, "synth", *options, "--floorplan", tmp_path / "plan.svg")
