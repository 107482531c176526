"""The same netlist with the same delays in Icarus Verilog: a second event simulator."""

import subprocess
from pathlib import Path

import numpy as np

from tilewright.hardware.gates.electrical import Electrical
from tilewright.hardware.gates.events import INPUT_DELAY, PERIOD, Stimulus
from tilewright.hardware.gates.netlist import Netlist
from tilewright.tools.debian import debian_tool

_OPERATORS = {"!": "~", "*": "&", "+": "|"}


def toggles(netlist: Netlist, electrical: Electrical, stimulus: Stimulus, folder: Path) -> np.ndarray:
    """Return how often each net toggles, as `events.simulate` counts."""
    (folder / "netlist.v").write_text(_verilog(netlist, electrical, stimulus))
    rows = ["".join(map(str, row[::-1])) for row in stimulus.inputs.tolist()]
    (folder / "stimulus.txt").write_text("\n".join(rows) + "\n")
    program = folder / "netlist.vvp"
    for command in ([debian_tool("iverilog"), "-g2012", "-o", program, "netlist.v"], [debian_tool("vvp"), program]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    counts = np.zeros(netlist.nets, np.uint32)
    last: dict[str, str] = {}
    codes: dict[str, int] = {}
    for line in (folder / "out.vcd").read_text().splitlines():
        words = line.split()
        if line.startswith("$var") and words[4][1:].isdecimal():
            codes[words[3]] = int(words[4][1:])
        elif line[:1] in ("0", "1") and line[1:] in codes:
            if last.get(line[1:], line[0]) != line[0]:
                counts[codes[line[1:]]] += 1
            last[line[1:]] = line[0]
    return counts


def _verilog(netlist: Netlist, electrical: Electrical, stimulus: Stimulus) -> str:
    registers = {next(iter(_outputs(each))): int(value)
                 for each, value in zip(netlist.flops, stimulus.registers, strict=True)}
    lines = ["`timescale 1ps/1ps", "module cells;", f"reg n{netlist.clock} = 0;"]
    lines += [f"{'reg' if net in registers else 'wire'} n{net}{f' = {registers[net]}' if net in registers else ''};"
              for net in range(2, netlist.nets) if net != netlist.clock]
    lines += ["wire n0 = 0;", "wire n1 = 1;", f"reg [{len(netlist.inputs) - 1}:0] drive;"]
    lines += [f"assign n{net} = drive[{place}];" for place, (net, _) in enumerate(netlist.inputs)]
    for instance in netlist.instances:
        for pin in instance.cell.outputs:
            if pin.name not in instance.nets:
                continue
            delay = max(1, round(1000 * electrical.delay(instance, pin.name)))
            out = f"n{instance.nets[pin.name]}"
            if instance.cell.storage is not None:
                storage = instance.cell.storage
                data, clock = (instance.nets[each.strip("()! ")] for each in (storage.data, storage.clock))
                invert = "~" if storage.data.strip("( ").startswith("!") else ""
                lines.append(f"always @(posedge n{clock}) {out} <= #{delay} {invert}n{data};")
            else:
                lines.append(f"assign #{delay} {out} = {_expression(pin.function, instance.nets)};")
    cycles, half, width = len(stimulus.inputs), round(500 * PERIOD), len(netlist.inputs)
    lines += [
        "endmodule", "module bench;", "cells dut();", f"reg [{width - 1}:0] rows [0:{cycles - 1}];", "integer i;",
        "initial begin", '$readmemb("stimulus.txt", rows);', "dut.drive = rows[0];", f"#{200 * half};",
        '$dumpfile("out.vcd"); $dumpvars(1, dut);', f"for (i = 1; i < {cycles}; i = i + 1) begin",
        f"dut.n{netlist.clock} = 1; #{round(1000 * INPUT_DELAY)} dut.drive = rows[i];",
        f"#{half - round(1000 * INPUT_DELAY)} dut.n{netlist.clock} = 0; #{half};", "end", "$finish;", "end",
        "endmodule"]
    return "\n".join([*lines, ""])


def _outputs(instance):
    return [instance.nets[pin.name] for pin in instance.cell.outputs if pin.name in instance.nets]


def _expression(function: str, nets) -> str:
    """Return Liberty's expression, in which neighbours stand for a conjunction, as Verilog's."""
    out, operand = [], False
    for token in _tokens(function):
        starts = token in nets or token in ("(", "!")
        if operand and starts:
            out.append("&")
        out.append(f"n{nets[token]}" if token in nets else _OPERATORS.get(token, token))
        operand = token in nets or token == ")"
    return " ".join(out)


def _tokens(function: str) -> list[str]:
    spaced = "".join(f" {mark} " if mark in "()!*+^&|" else mark for mark in function)
    return spaced.split()
