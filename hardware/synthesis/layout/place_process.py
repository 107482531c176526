"""The process that places: `python -m` runs it in a step's folder, on `placed_results.placing_inputs`."""

import json
import sys
from pathlib import Path

from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.synthesis.layout.coloquinte_placer import UTILISATION, coloquinte_places
from tilewright.hardware.synthesis.layout.layout_netlist import layout_netlist
from tilewright.hardware.synthesis.layout.placed_results import PLACES, SPEF, VERILOG_BY_NUMBER
from tilewright.hardware.synthesis.layout.placed_wires import wired_nets
from tilewright.hardware.synthesis.layout.spef import spef
from tilewright.hardware.synthesis.layout.wire_rules import read_lef

__all__ = ["place_files"]

_NETS_TOLD = 20_000


def place_files(top: str, clock: str, technology: str, macro: str) -> None:
    """Read netlist.json, cells.lib and the LEF files here; write places, wires and the netlist by numbers."""
    netlist = layout_netlist(Path("netlist.json"), top, clock, lambda kind: kind == macro)
    outlines, rules = read_lef(technology, Path())
    _say(f"Placing {len(netlist.cells)} cells")
    places = coloquinte_places(netlist, outlines, _say)
    library = read_library(Path("cells.lib").absolute())
    nets = []
    for number, net in enumerate(wired_nets(netlist, places, library, rules), start=1):
        nets.append(net)
        if number % _NETS_TOLD == 0:
            _say(f"Running wires, {number:,} nets")
    Path(VERILOG_BY_NUMBER).write_text(netlist.verilog(top), encoding="utf-8")
    Path(SPEF).write_text(spef(top, [net.spef for net in nets]), encoding="utf-8")
    Path(PLACES).write_text(json.dumps({
        "width": places.width, "height": places.height, "utilisation": UTILISATION,
        "names": [cell.name for cell in (*netlist.cells, *netlist.memories)], "corners": places.corners,
        "nets": [(net.driver, net.sinks, net.pin_pf, net.wire_pf, net.length_um) for net in nets]}), encoding="utf-8")


def _say(text: str) -> None:
    print(f"\nInfo: {text}.", flush=True)


if __name__ == "__main__":
    place_files(*sys.argv[1:])
