// Multipliers of the gateware on Lattice ECP5: products in MULT18X18D blocks with the blocks' own registers.
//
// Yosys does not pack registers into the block when it infers one, and the wires from flip-flops to the block and back
// are then the longest paths of the array.  Four modules here take the place of modules of the gateware: their ports
// are those of the modules made from `Multipliers`, `PairMultipliers` and `Product` below `Coprocessor`, which can clear
// them, and the synthesis script exchanges them by name (`chtype -set ecp5_multipliers t:*multipliers`, and so on).
//
// Registers inside the block load in every cycle, but for those of weights that stay.  A product therefore stands for
// one cycle only, two cycles after the values that it is made of: the gateware takes it then, as nothing in its
// pipelines waits.  (Four blocks that lie together share four clock enables.  With two or three enables a multiplier few
// places were legal on a nearly full device, and nextpnr looked for them without end.)
//
// Parameters and ports of the block: Lattice FPGA-TN-02205, "ECP5 and ECP5-5G sysDSP Usage Guide", and nextpnr's names
// for them.

// tilewright.rtl.array.lane.Multipliers.
module ecp5_multipliers (
    input                clk,
    input                rst,  // ports of every module below `Coprocessor`; nothing here is reset
    input                clear,
    input  [16*10-1:0]   a,
    input                a_enable,
    output [16*10-1:0]   a_held,
    input  [16*12-1:0]   b,
    input                b_enable,
    output [16*21-1:0]   products,
    input                products_enable
);
    // The block's own copy of the operand cannot be read by the fabric: what the next lane takes lies here again.
    reg [16*10-1:0] held;
    always @(posedge clk) if (a_enable) held <= a;
    assign a_held = held;

    genvar k;
    generate
        for (k = 0; k < 16; k = k + 1) begin : lane_product
            wire [35:0] product;
            assign products[21*k +: 21] = product[20:0];
            ecp5_block #(.SIGNED(1'b1)) place (
                .clk(clk), .b_enable(b_enable),
                .a({{8{a[10*k+9]}}, a[10*k +: 10]}), .b({{6{b[12*k+11]}}, b[12*k +: 12]}), .product(product)
            );
        end
    endgenerate
endmodule

// tilewright.rtl.array.pair_multipliers.PairMultipliers, of runs and two output channels.
module ecp5_pairs (
    input                clk,
    input                rst,
    input                clear,
    input  [8*8-1:0]     even,
    input  [8*8-1:0]     odd,
    input                data_enable,
    output [8*8-1:0]     even_held,
    output [8*8-1:0]     odd_held,
    input  [16*8-1:0]    weight_even,
    input  [16*8-1:0]    weight_odd,
    input                weight_enable,
    input                operand_enable,
    input                product_enable,
    output [16*18-1:0]   products
);
    ecp5_sums #(.PAIRS(8), .DATA(8), .WEIGHT(8), .PRODUCT(18)) sums (
        .clk(clk), .even(even), .odd(odd), .data_enable(data_enable), .even_held(even_held), .odd_held(odd_held),
        .weight_even(weight_even), .weight_odd(weight_odd), .weight_enable(weight_enable),
        .operand_enable(operand_enable), .product_enable(product_enable), .products(products)
    );
endmodule

// The same of two transformed patches and one output channel.
module ecp5_tile_factors (
    input                clk,
    input                rst,
    input                clear,
    input  [16*10-1:0]   even,
    input  [16*10-1:0]   odd,
    input                data_enable,
    output [16*10-1:0]   even_held,
    output [16*10-1:0]   odd_held,
    input  [16*12-1:0]   weight_even,
    input  [16*12-1:0]   weight_odd,
    input                weight_enable,
    input                operand_enable,
    input                product_enable,
    output [16*23-1:0]   products
);
    ecp5_sums #(.PAIRS(16), .DATA(10), .WEIGHT(12), .PRODUCT(23)) sums (
        .clk(clk), .even(even), .odd(odd), .data_enable(data_enable), .even_held(even_held), .odd_held(odd_held),
        .weight_even(weight_even), .weight_odd(weight_odd), .weight_enable(weight_enable),
        .operand_enable(operand_enable), .product_enable(product_enable), .products(products)
    );
endmodule

// Sixteen products of sums, each of a value of the data and one of the weights; PAIRS of the data, in turn.
module ecp5_sums #(
    parameter PAIRS = 8,
    parameter DATA = 8,
    parameter WEIGHT = 8,
    parameter PRODUCT = 18
) (
    input                       clk,
    input  [PAIRS*DATA-1:0]     even,
    input  [PAIRS*DATA-1:0]     odd,
    input                       data_enable,
    output [PAIRS*DATA-1:0]     even_held,
    output [PAIRS*DATA-1:0]     odd_held,
    input  [16*WEIGHT-1:0]      weight_even,
    input  [16*WEIGHT-1:0]      weight_odd,
    input                       weight_enable,
    input                       operand_enable,
    input                       product_enable,
    output [16*PRODUCT-1:0]     products
);
    reg [PAIRS*DATA-1:0] even_register, odd_register;
    reg [16*WEIGHT-1:0] weight_even_register, weight_odd_register;
    always @(posedge clk) begin
        if (data_enable) begin
            even_register <= even;
            odd_register <= odd;
        end
        if (weight_enable) begin
            weight_even_register <= weight_even;
            weight_odd_register <= weight_odd;
        end
    end
    assign even_held = even_register;
    assign odd_held = odd_register;

    genvar k;
    generate
        for (k = 0; k < 16; k = k + 1) begin : pair_product
            wire signed [DATA-1:0] x_even = even_register[DATA*(k%PAIRS) +: DATA];
            wire signed [DATA-1:0] x_odd = odd_register[DATA*(k%PAIRS) +: DATA];
            wire signed [WEIGHT-1:0] w_even = weight_even_register[WEIGHT*k +: WEIGHT];
            wire signed [WEIGHT-1:0] w_odd = weight_odd_register[WEIGHT*k +: WEIGHT];
            wire signed [17:0] a = x_even + w_odd;
            wire signed [17:0] b = x_odd + w_even;
            wire [35:0] product;
            assign products[PRODUCT*k +: PRODUCT] = product[PRODUCT-1:0];
            ecp5_block #(.SIGNED(1'b1)) place (
                .clk(clk), .b_enable(1'b1), .a(a), .b(b), .product(product)
            );
        end
    endgenerate
endmodule

// tilewright.rtl.arithmetic.product.Product.  Narrower factors are extended by zeros when Yosys connects them.
module ecp5_product (
    input         clk,
    input         rst,
    input         clear,
    input  [17:0] a,
    input  [17:0] b,
    input         enable,
    output [35:0] product,
    input         product_enable
);
    ecp5_block #(.SIGNED(1'b0)) place (
        .clk(clk), .b_enable(1'b1), .a(a), .b(b), .product(product)
    );
endmodule

// A block with registers before and after the product, without reset; that of b has an enable.
module ecp5_block #(
    parameter SIGNED = 1'b0
) (
    input         clk,
    input         b_enable,
    input  [17:0] a,
    input  [17:0] b,
    output [35:0] product
);
    MULT18X18D #(
        .REG_INPUTA_CLK("CLK0"), .REG_INPUTA_CE("CE0"), .REG_INPUTA_RST("RST0"),
        .REG_INPUTB_CLK("CLK0"), .REG_INPUTB_CE("CE1"), .REG_INPUTB_RST("RST0"),
        .REG_OUTPUT_CLK("CLK0"), .REG_OUTPUT_CE("CE2"), .REG_OUTPUT_RST("RST1"),
        .REG_PIPELINE_CLK("NONE"), .REG_INPUTC_CLK("NONE"),
        .GSR("DISABLED"), .RESETMODE("SYNC")
    ) block (
        .CLK0(clk), .CLK1(1'b0), .CLK2(1'b0), .CLK3(1'b0),
        .CE0(1'b1), .CE1(b_enable), .CE2(1'b1), .CE3(1'b0),
        .RST0(1'b0), .RST1(1'b0), .RST2(1'b0), .RST3(1'b0),
        .SIGNEDA(SIGNED), .SIGNEDB(SIGNED), .SOURCEA(1'b0), .SOURCEB(1'b0),
        .A0(a[0]), .A1(a[1]), .A2(a[2]), .A3(a[3]), .A4(a[4]), .A5(a[5]),
        .A6(a[6]), .A7(a[7]), .A8(a[8]), .A9(a[9]), .A10(a[10]), .A11(a[11]),
        .A12(a[12]), .A13(a[13]), .A14(a[14]), .A15(a[15]), .A16(a[16]), .A17(a[17]),
        .B0(b[0]), .B1(b[1]), .B2(b[2]), .B3(b[3]), .B4(b[4]), .B5(b[5]),
        .B6(b[6]), .B7(b[7]), .B8(b[8]), .B9(b[9]), .B10(b[10]), .B11(b[11]),
        .B12(b[12]), .B13(b[13]), .B14(b[14]), .B15(b[15]), .B16(b[16]), .B17(b[17]),
        .C0(1'b0), .C1(1'b0), .C2(1'b0), .C3(1'b0), .C4(1'b0), .C5(1'b0),
        .C6(1'b0), .C7(1'b0), .C8(1'b0), .C9(1'b0), .C10(1'b0), .C11(1'b0),
        .C12(1'b0), .C13(1'b0), .C14(1'b0), .C15(1'b0), .C16(1'b0), .C17(1'b0),
        .P0(product[0]), .P1(product[1]), .P2(product[2]), .P3(product[3]), .P4(product[4]), .P5(product[5]),
        .P6(product[6]), .P7(product[7]), .P8(product[8]), .P9(product[9]), .P10(product[10]), .P11(product[11]),
        .P12(product[12]), .P13(product[13]), .P14(product[14]), .P15(product[15]), .P16(product[16]), .P17(product[17]),
        .P18(product[18]), .P19(product[19]), .P20(product[20]), .P21(product[21]), .P22(product[22]), .P23(product[23]),
        .P24(product[24]), .P25(product[25]), .P26(product[26]), .P27(product[27]), .P28(product[28]), .P29(product[29]),
        .P30(product[30]), .P31(product[31]), .P32(product[32]), .P33(product[33]), .P34(product[34]), .P35(product[35])
    );
endmodule
