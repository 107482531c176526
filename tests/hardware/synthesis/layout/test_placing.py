"""Cells are placed in rows without overlap, their wires go to OpenSTA, and the report has both frequencies."""

import importlib.util
import json
from itertools import pairwise

import pytest

from tests.cli.test_app import refused
from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.synthesis.layout.coloquinte_placer import coloquinte_places
from tilewright.hardware.synthesis.layout.layout_netlist import layout_netlist
from tilewright.hardware.synthesis.layout.lef import LayerWire, LefError, cell_outlines
from tilewright.hardware.synthesis.layout.placed_results import PlacedResults
from tilewright.hardware.synthesis.layout.placed_wires import wired_nets
from tilewright.hardware.synthesis.layout.wire_rules import WireRules
from tilewright.hardware.synthesis.static_timing import placed_timing_of
from tilewright.tools.debian import debian_data

STAGES = 40


@pytest.fixture
def chain(tmp_path):
    """Return a ring of inverters and flip-flops, a memory at its end, and a port at its start."""
    cells = {"memory": {"type": "ram", "connections": {"RD_DATA": [3 * STAGES + 1], "WR_DATA": [2, "x"]}}}
    for stage in range(STAGES):
        net = 2 + 2 * stage
        cells[f"inverter {stage}"] = {"type": "INVX1", "connections": {"A": [net], "Y": [net + 1]}}
        cells[f"flop {stage}"] = {"type": "DFFPOSX1", "connections": {
            "D": [net + 1], "CLK": [1], "Q": [2 + (2 * stage + 2) % (2 * STAGES)]}}
    path = tmp_path / "netlist.json"
    path.write_text(json.dumps({"modules": {"top": {"cells": cells, "ports": {
        "clk": {"direction": "input", "bits": [1]}, "q": {"direction": "output", "bits": [2, "0"]}}}}}))
    return layout_netlist(path, "top", "clk", lambda kind: kind == "ram")


def test_a_netlist_has_its_clock_and_memories_apart(chain):
    assert (len(chain.cells), len(chain.memories), chain.ports) == (2 * STAGES, 1, {2: False})
    nets = chain.nets()
    assert 1 not in nets
    assert len(nets) == 2 * STAGES
    assert {(pin.cell is None, pin.pin) for pin in nets[2]} == {
        (False, "A"), (False, "Q"), (False, "WR_DATA[0]"), (True, "")}
    verilog = chain.verilog("top")
    assert verilog.startswith("module top (clock, n2);\ninput clock;\noutput n2;\n")
    assert "ram" not in verilog
    assert verilog.count("(clock)") == STAGES


def test_cells_are_placed_in_rows_and_their_wires_are_counted(chain):
    pytest.importorskip("coloquinte")
    outlines = cell_outlines(debian_data("osu018_stdcells.lef").read_text())
    said = []
    places = coloquinte_places(chain, outlines, said.append)
    taken = sorted((y, x, x + outlines[cell.kind].width)
                   for cell, (x, y) in zip(chain.cells, places.corners, strict=False))
    assert all(y % 10 == 0 and 0 <= left < right <= places.width and y < places.height for y, left, right in taken)
    assert all(a[0] < b[0] or a[2] <= b[1] + 1e-6 for a, b in pairwise(taken)), "cells overlap"
    assert said[-1] == "Placing in rows"
    library = read_library(debian_data("osu018_stdcells.lib"))
    nets = list(wired_nets(chain, places, library, WireRules(LayerWire(1e-4, 0.25), LayerWire(1e-4, 0.25), 2.0)))
    assert sum(net.sinks for net in nets) == 2 * STAGES
    assert all(net.wire_pf == pytest.approx(2e-4 * net.length_um) for net in nets)
    assert sum(net.length_um for net in nets) / len(nets) < 40, "neighbours in the ring lie together"
    with pytest.raises(LefError, match="INVX1"):
        coloquinte_places(chain, {name: each for name, each in outlines.items() if name != "INVX1"}, said.append)


LOG = """Startpoint: g0 (rising edge-triggered flip-flop clocked by clock)
Endpoint: g2 (rising edge-triggered flip-flop clocked by clock)
   0.0000    0.0000 ^ g0/CLK (DFFPOSX1)
   0.5000    0.5000 ^ g0/Q (DFFPOSX1)
{}   0.2500    0.8000 v g1/Y (INVX1)
{}            0.8000   data arrival time
  -0.2000  999.7500   library setup time
"""


def test_the_report_tells_wires_from_cells():
    log = LOG.format("", "") + "WITH WIRES\n" + LOG.format(
        "   0.0300    0.5300 ^ g1/A (INVX1)\n", "   0.0200    0.8000 v g2/D (DFFPOSX1)\n")
    without, wired = placed_timing_of(log, read_library(debian_data("osu018_stdcells.lib")), ("a", "b", "c"), str.upper)
    assert without.fmax_mhz == wired.fmax_mhz == pytest.approx(1000)
    path = wired.path
    assert (path.start, path.end, path.end_block, path.cells, without.path.cells) == ("a", "c", "C", 1, 1)
    assert (path.logic_ns, path.wire_ns) == (pytest.approx(0.95), pytest.approx(0.05))


def test_wires_belong_to_the_block_that_drives_them():
    results = PlacedResults(64.0, 64.0, 0.7, ("a", "b"), ((0.0, 0.0), (63.0, 63.0)),
                            ((0, 2, 0.02, 0.006, 40.0), (1, 1, 0.01, 0.002, 10.0), (0, 1, 0.02, 0.0, 1.0),
                             (None, 5, 1.0, 1.0, 1.0)))
    wires = results.wires(str.upper)
    assert (wires["A"].pins, wires["A"].femtofarads_per_pin) == (3, pytest.approx(2.0))
    assert set(wires) == {"A", "B"}
    assert results.squares(str.upper) == [(0, 64, "A"), (63, 1, "B")]


def test_without_coloquinte_it_is_told_how_to_get_it(monkeypatch):
    there_is = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "coloquinte" else there_is(name))
    monkeypatch.setattr("tilewright.hardware.synthesis.sources.machine_design",
                        lambda *_, **__: pytest.fail("it was built before the placer was looked for"))
    assert "'tilewright[layout]'" in refused(1, "synth", "--target", "osu018", "--machine", "nano", "--place")
