"""Cells that a netlist does not have, but a device takes."""

import json

from tilewright.hardware.synthesis.cell_counts import CellCounts, with_lone_registers


def test_a_lut_lies_before_one_register_alone(tmp_path):
    cells = {
        "lut": {"type": "LUT2", "connections": {"F": [5]}},
        "first": {"type": "DFF", "connections": {"D": [5]}},
        "second": {"type": "DFFE", "connections": {"D": [5]}},
        "wired": {"type": "DFF", "connections": {"D": ["1"]}},
    }
    netlist = tmp_path / "netlist.json"
    netlist.write_text(json.dumps({"modules": {"top": {"cells": cells}}}))
    counts = CellCounts({("load", "DFF"): 2}, (), {"first": "load", "second": "store", "wired": "load"})
    lone = with_lone_registers(counts, netlist, "top", ("DFF", "DFFE"), {"LUT2": "F"}, "lone")
    assert lone.cells == {("load", "DFF"): 2, ("store", "lone"): 1, ("load", "lone"): 1}
