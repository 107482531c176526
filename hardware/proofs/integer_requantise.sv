// A sum that enters at one moment leaves 14 cycles later as whole numbers make it, whatever comes before and after: by a
// shift, or by a long multiplier and gemmlowp's two roundings, or one. The way is followed in parts: the factors are the
// sum's magnitude and the multiplier, the product is what the four multipliers make together, and the result is the
// rounding of the product. Roundings are written as their sources have them, of signed numbers.
module top(input clk, input [138:0] other, input other_valid);
  reg [4:0] now = 0;
  always @(posedge clk) now <= now + (now != 31);

  (* anyconst *) reg [138:0] given;
  (* anyconst *) reg [5:0] shifts;
  (* anyconst *) reg long, twice;
  wire [31:0] acc = given[31:0], bias = given[63:32];
  wire [23:0] mantissa = given[87:64];
  wire signed [7:0] zero_point = given[102:95], low = given[110:103], high = given[118:111];
  wire [17:0] addend = given[137:120];
  wire [30:0] multiplier = long ? {1'b1, addend[17:16], addend[3:0], mantissa} : {13'b0, mantissa[17:0]};
  wire [5:0] shift = long ? given[93:88] : shifts;
  always @* assume (given[119] & low <= high & (long ? shift != 0 : {13'b0, addend} < multiplier) & (long | !twice));

  wire [8:0] out;
  wire valid;
  wire [31:0] factor;
  wire [62:0] product;
  wire [35:0] lower;
  wire [30:0] middle_a;
  wire [31:0] middle_b;
  wire [26:0] upper;
  wire [17:0] lower_b, middle_b_b;
  wire [12:0] middle_a_b, upper_b;
  dut requantise(.clk(clk), .rst(1'b0), .i__payload(now == 0 ? given : other), .i__valid(now == 0 | other_valid),
                 .shifts(shifts), .long(long), .twice(twice), .o__payload(out), .o__valid(valid),
                 .factor_5(factor), .product_9(product),
                 .\lower_product.b (lower_b), .\middle_a_product.b (middle_a_b), .\middle_b_product.b (middle_b_b),
                 .\upper_product.b (upper_b),
                 .\lower_product.product (lower), .\middle_a_product.product (middle_a),
                 .\middle_b_product.product (middle_b), .\upper_product.product (upper));
  reg [62:0] sum, p;
  always @(posedge clk) begin
    if (now == 7) sum <= lower + (({31'b0, middle_a} + middle_b) << 18) + ({36'b0, upper} << 36);
    if (now == 9) p <= product;
  end

  // A product of the magnitude, at most 2**31, and a multiplier; at least the multiplier, and so above the addend, of a
  // sum below 0.
  wire [31:0] total = acc + bias, magnitude = total[31] ? -total : total;
  always @* if (now == 9) assume (product <= 63'h3fffffff80000000 & (!total[31] | product >= {32'b0, multiplier}));

  // floor((x * multiplier + addend) / 2**shift)
  wire signed [63:0] x = total[31] ? -$signed({1'b0, p}) : $signed({1'b0, p});
  wire signed [63:0] floored = (x + $signed({46'b0, addend})) >>> shift;

  // Once, halves up; or SaturatingRoundingDoublingHighMul, cut toward zero, and RoundingDivideByPOT, away from zero.
  wire signed [63:0] once = (x + $signed(64'd1 << (shift - 6'd1))) >>> shift;
  wire signed [63:0] nudged = x + (x < 0 ? 64'sd1 - 64'sd1073741824 : 64'sd1073741824);
  wire signed [63:0] doubled = nudged < 0 ? -(-nudged >>> 31) : nudged >>> 31;
  wire [5:0] exponent = shift - 6'd31;
  wire [63:0] mask = (64'd1 << exponent) - 64'd1;
  wire signed [63:0] away = (doubled >>> exponent) + $signed({63'b0, (doubled & mask) > ((mask >> 1) + (doubled < 0))});

  wire signed [63:0] level = !long ? floored : twice & shift > 31 ? away : once;
  wire signed [63:0] moved = level + zero_point;
  wire signed [7:0] expected = moved > high ? high : moved < low ? low : moved[7:0];

  always @* begin
    if (now == 5) begin
      assert (factor == magnitude);
      assert (lower_b == multiplier[17:0] & middle_b_b == multiplier[17:0]);
      assert (middle_a_b == multiplier[30:18] & upper_b == multiplier[30:18]);
    end
    if (now == 9) assert (product == sum);
    if (now == 14) assert (valid & out[8] == given[138] & $signed(out[7:0]) == expected);
    cover (now == 14 & out[7:0] == 100 & total[31] & low == -128 & !long);
    cover (now == 14 & out[7:0] == 100 & total[31] & low == -128 & long & twice & shift > 40 & away != once);
  end
endmodule
