// A sum that enters at one moment leaves 14 cycles later as float32 arithmetic makes it, whatever comes before and after.
// The way is followed in parts: the factor is the rounded sum, the product is what the four multipliers make together,
// and the result is the rounding of the product.
module top(input clk, input [119:0] other, input other_valid);
  reg [4:0] now = 0;
  always @(posedge clk) now <= now + (now != 31);

  (* anyconst *) reg [119:0] given;
  wire [31:0] acc = given[31:0], bias = given[63:32];
  wire [23:0] mantissa = given[87:64];
  wire [6:0] shift = given[94:88];
  wire signed [7:0] zero_point = given[102:95], low = given[110:103], high = given[118:111];
  always @* assume (mantissa[23] & low <= high);

  wire [8:0] out;
  wire valid;
  wire [23:0] factor;
  wire [47:0] product;
  wire [35:0] lower;
  wire [23:0] middle_a, middle_b;
  wire [11:0] upper;
  dut requantise(.clk(clk), .rst(1'b0), .i__payload(now == 0 ? given : other), .i__valid(now == 0 | other_valid),
                 .o__payload(out), .o__valid(valid), .factor_5(factor), .product_9(product),
                 .\lower_product.product (lower), .\middle_a_product.product (middle_a),
                 .\middle_b_product.product (middle_b), .\upper_product.product (upper));
  reg [47:0] kept_product, sum;
  always @(posedge clk) begin
    if (now == 7) sum <= lower + ((({24'b0, middle_a} + middle_b) << 18)) + ({36'b0, upper} << 36);
    if (now == 9) kept_product <= product;
  end

  // The sum as a sign and 24 bits, halves to even, of `bits` bits.
  wire [31:0] total = acc + bias, magnitude = total[31] ? -total : total;
  reg [5:0] bits;
  integer place;
  always @* begin
    bits = 0;
    for (place = 0; place < 32; place = place + 1) if (magnitude[place]) bits = place + 1;
  end
  wire [31:0] normal = magnitude << (32 - bits);
  wire [24:0] rounded = normal[31:8] + (normal[7] & (|normal[6:0] | normal[8]));
  wire carry = rounded[24];
  wire [23:0] expected_factor = carry ? 24'h800000 : rounded[23:0];

  // Its product with the mantissa, at least 2**46 as both have their top bits set, to 24 bits; then to an integer.
  wire [47:0] p = kept_product;
  wire [47:0] aligned = p[47] ? p : p << 1;
  wire [24:0] r = aligned[47:24] + (aligned[23] & (|aligned[22:0] | aligned[24]));
  wire signed [9:0] n = $signed({3'b0, shift}) + $signed({9'b0, !p[47]}) - $signed({4'b0, bits}) - $signed({9'b0, carry});
  wire [4:0] places = n[4:0];
  wire [25:0] rest = {1'b0, r} & ((26'b1 << places) - 26'b1), half = (26'b1 << places) >> 1;
  wire [24:0] down = r >> places;
  wire [24:0] near = down + (rest > half | (rest == half & down[0]));
  wire [12:0] q = magnitude == 0 | n >= 26 ? 0 : n <= 0 | near > 4096 ? 4096 : near;
  wire signed [15:0] signed_q = total[31] ? -$signed({3'b0, q}) : $signed({3'b0, q});
  wire signed [15:0] moved = signed_q + zero_point;
  wire signed [7:0] expected = moved > high ? high : moved < low ? low : moved[7:0];

  always @* begin
    if (now == 5) assert (factor == expected_factor);
    if (now == 9) assert (product == sum);
    if (now == 14) assert (valid & out[8] == given[119] & $signed(out[7:0]) == expected);
    cover (now == 14 & out[7:0] == 100 & total[31] & low == -128);
  end
endmodule
