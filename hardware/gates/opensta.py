"""A second opinion on power: OpenSTA's, on the same netlist, with the same activity at every pin.

Debian's OpenSTA (2.0.17, 2019) reads no waveforms, so the activity of each pin is set by hand, and it adds what a rise
and what a fall cost inside a cell where a transition is one of them: its internal power is twice the library's. It is
halved here (an inverter alone shows it; later versions of OpenSTA divide, power/Power.cc).
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tilewright.errors import ToolError
from tilewright.hardware.gates.electrical import BORDER_LOAD, BORDER_SLEW
from tilewright.hardware.gates.events import PERIOD, Activity
from tilewright.hardware.gates.netlist import HIGH, LOW, Netlist
from tilewright.tools.debian import debian_tool

__all__ = ["OpenStaError", "StaPower", "sta_power"]

_TOTAL = re.compile(r"^Total\s+(\S+)\s+(\S+)\s+(\S+)\s+(\S+)", re.MULTILINE)

_SCRIPT = """\
read_liberty {library}
read_verilog netlist.v
link_design top
create_clock -name clk -period {period} [get_ports n{clock}]
set_input_delay 0 -clock clk [all_inputs]
set_input_transition {slew} [all_inputs]
set_load {load} [all_outputs]
proc rate {{pin per_cycle}} {{ sta::set_power_pin_activity [lindex [get_pins $pin] 0] $per_cycle 0.5 }}
source activity.tcl
report_power -digits 9
exit
"""


class OpenStaError(ToolError):
    """OpenSTA did not report a power."""


@dataclass(frozen=True, slots=True)
class StaPower:
    """Energy in pJ per cycle: ``internal`` halved; ``switching`` has not the clock's net, which it does not charge."""

    internal: float
    switching: float

    @property
    def per_cycle(self) -> float:
        """Both, in pJ."""
        return self.internal + self.switching


def sta_power(netlist: Netlist, activity: Activity, library: Path) -> StaPower:
    """Return OpenSTA's power for ``activity``.

    Raises
    ------
    OpenStaError
        If it reports none.
    ToolMissingError
        If there is no OpenSTA.
    """
    script = _SCRIPT.format(library=library, period=PERIOD, clock=netlist.clock, slew=BORDER_SLEW, load=BORDER_LOAD)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        (folder / "netlist.v").write_text(_verilog(netlist))
        (folder / "activity.tcl").write_text(_rates(netlist, activity))
        (folder / "power.tcl").write_text(script)
        done = subprocess.run([debian_tool("sta"), "-exit", "power.tcl"], cwd=folder, capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL)
    match = _TOTAL.search(done.stdout)
    if match is None:
        raise OpenStaError(f"OpenSTA must report the total power of {netlist.name}, and said: "
                           f"{(done.stdout + done.stderr).strip()[-500:]!r}")
    internal, switching = (float(match[place]) for place in (1, 2))
    picojoules = PERIOD * 1e3  # from watts and ns
    return StaPower(0.5 * internal * picojoules, switching * picojoules)


def _verilog(netlist: Netlist) -> str:
    """Return the netlist with nets and instances named by numbers."""
    inputs, outputs = ([net for net, _ in border] for border in (netlist.inputs, netlist.outputs))
    fresh = [net for net in outputs if net not in inputs]
    lines = [f"module top ({', '.join(f'n{net}' for net in (netlist.clock, *inputs, *fresh))});",
             *(f"input n{net};" for net in (netlist.clock, *inputs)), *(f"output n{net};" for net in fresh),
             *(f"wire n{net};" for net in range(2, netlist.nets))]
    constant = {LOW: "1'b0", HIGH: "1'b1"}
    for number, instance in enumerate(netlist.instances):
        pins = ", ".join(f".{pin}({constant.get(net, f'n{net}')})" for pin, net in instance.nets.items())
        lines.append(f"{instance.cell.name} g{number} ({pins});")
    return "\n".join([*lines, "endmodule", ""])


def _rates(netlist: Netlist, activity: Activity) -> str:
    """Return a command for each pin of each cell: its toggles per cycle."""
    lines = []
    for number, instance in enumerate(netlist.instances):
        for pin, net in instance.nets.items():
            lines.append(f"rate g{number}/{pin} {activity.toggles[net] / activity.cycles:.6f}")
    return "\n".join([*lines, ""])
