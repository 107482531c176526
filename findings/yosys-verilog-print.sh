#!/usr/bin/env bash
# A Print of Amaranth's says something else once the design is Verilog: -5 in hexadecimal is "-5" in RTLIL and "fb" in Verilog.
#
# Surprise: Amaranth's Print has Python's formats, and its RTLIL keeps them: Amaranth's simulator and Yosys' own (sim) print the
# same line of the same design. Yosys' write_verilog, which Amaranth's verilog.convert calls, has only $write, and leaves out what
# that lacks, without a warning: a signed number in a base other than ten is printed as its bits, "#" loses its prefix, a fill
# other than 0 becomes spaces, a space for the sign becomes a plus, "_" groups nothing, and capitals are small. Decimal numbers,
# their width and fill of 0 come through.
# Why one guesses wrong: Print is exact on both sides of RTLIL, arithmetic is the same in Verilog, and it is one and the same Yosys.
# Who meets it: whoever compares a log of Amaranth's simulator with one of Verilator, or reads hexadecimal numbers of a trace back.
# Versions: amaranth 0.5.10, pyosys 0.70 (Yosys 0.70).
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check amaranth==0.5.10 pyosys==0.70
cat > "$folder/design.py" <<'PYTHON'
import sys
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Format, Module, Print, Signal
from amaranth.sim import Simulator

low, high = Signal(8, init=65), Signal(8, init=171)
minus = Signal(range(-128, 128), init=-5)
m = Module()
m.domains.sync = clock = ClockDomain(reset_less=True)
m.d.sync += [each.eq(each) for each in (low, high, minus)]
m.d.sync += Print(Format("line:{:d}:{:5d}:{:05d}:{:x}:{:08b}:{:#x}:{:*>6d}:{: d}:{:_b}:{:X}",
                         minus, minus, minus, minus, minus, low, low, low, low, high))


async def one_cycle(context):
    await context.tick()


simulator = Simulator(m)
simulator.add_clock(1e-6)
simulator.add_testbench(one_cycle)
simulator.run()
Path(sys.argv[1], "design.il").write_text(rtlil.convert(m, ports=[clock.clk]))
PYTHON
cat > "$folder/yosys.py" <<'PYTHON'
import sys

from pyosys import libyosys

design = libyosys.Design()
for command in sys.argv[1].split(";"):
    libyosys.run_pass(command.strip(), design)
PYTHON
cd "$folder"
python="$folder/venv/bin/python"
"$folder/venv/bin/pip" list 2>/dev/null | grep -E '^(amaranth|pyosys) '
cycle="hierarchy -top top; proc; sim -clock clk -n 1"
"$python" design.py "$folder" | grep '^line:' > amaranth.txt
"$python" yosys.py "read_rtlil design.il; $cycle" 2>&1 | grep '^line:' > rtlil.txt
"$python" yosys.py "read_rtlil design.il; write_verilog design.v" > log.txt 2>&1
"$python" yosys.py "read_verilog design.v; $cycle" 2>&1 | grep '^line:' > verilog.txt
for name in amaranth rtlil verilog; do echo "$name: $(cat $name.txt)"; done
changed=0
differs() {  # name, expected line
    if [ "$(cat "$1.txt")" != "$2" ]; then echo "CHANGED: $1 was to print $2"; changed=1; fi
}
differs amaranth "line:-5:   -5:-0005:-5:-0000101:0x41:****65: 65:100_0001:AB"
differs rtlil "$(cat amaranth.txt)"
differs verilog "line:-5:   -5:-0005:fb:11111011:41:    65:+65:1000001:ab"
if grep -qi warning log.txt; then echo "CHANGED: write_verilog warns"; changed=1; fi
if [ "$changed" = 1 ]; then exit 1; fi
echo "STILL SO: what Verilog cannot print is printed otherwise, without a word."
