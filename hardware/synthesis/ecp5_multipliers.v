// tilewright.rtl.array.lane.Multipliers on Lattice ECP5: each product in one MULT18X18D with its own registers.
//
// Yosys does not pack registers into the block when it infers one, and the wires from flip-flops to the block and back
// are then the longest paths of the array.  Ports are those of the module made from `Multipliers`; the synthesis
// script puts this in its place (`chtype -set ecp5_multipliers t:*multipliers`).  Parameters and ports:
// Lattice FPGA-TN-02205, "ECP5 and ECP5-5G sysDSP Usage Guide", and nextpnr's names for them.
module ecp5_multipliers (
    input                clk,
    input                rst,  // a port of every module of Amaranth's; nothing here is reset
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
            wire [17:0] left = {{8{a[10*k+9]}}, a[10*k +: 10]};
            wire [17:0] right = {{6{b[12*k+11]}}, b[12*k +: 12]};
            wire [20:0] product;
            assign products[21*k +: 21] = product;
            MULT18X18D #(
                .REG_INPUTA_CLK("CLK0"), .REG_INPUTA_CE("CE0"), .REG_INPUTA_RST("RST0"),
                .REG_INPUTB_CLK("CLK0"), .REG_INPUTB_CE("CE1"), .REG_INPUTB_RST("RST0"),
                .REG_OUTPUT_CLK("CLK0"), .REG_OUTPUT_CE("CE2"), .REG_OUTPUT_RST("RST0"),
                .REG_PIPELINE_CLK("NONE"), .REG_INPUTC_CLK("NONE"),
                .GSR("DISABLED"), .RESETMODE("SYNC")
            ) block (
                .CLK0(clk), .CLK1(1'b0), .CLK2(1'b0), .CLK3(1'b0),
                .CE0(a_enable), .CE1(b_enable), .CE2(products_enable), .CE3(1'b0),
                .RST0(1'b0), .RST1(1'b0), .RST2(1'b0), .RST3(1'b0),
                .SIGNEDA(1'b1), .SIGNEDB(1'b1), .SOURCEA(1'b0), .SOURCEB(1'b0),
                .A0(left[0]), .A1(left[1]), .A2(left[2]), .A3(left[3]), .A4(left[4]), .A5(left[5]),
                .A6(left[6]), .A7(left[7]), .A8(left[8]), .A9(left[9]), .A10(left[10]), .A11(left[11]),
                .A12(left[12]), .A13(left[13]), .A14(left[14]), .A15(left[15]), .A16(left[16]), .A17(left[17]),
                .B0(right[0]), .B1(right[1]), .B2(right[2]), .B3(right[3]), .B4(right[4]), .B5(right[5]),
                .B6(right[6]), .B7(right[7]), .B8(right[8]), .B9(right[9]), .B10(right[10]), .B11(right[11]),
                .B12(right[12]), .B13(right[13]), .B14(right[14]), .B15(right[15]), .B16(right[16]), .B17(right[17]),
                .C0(1'b0), .C1(1'b0), .C2(1'b0), .C3(1'b0), .C4(1'b0), .C5(1'b0),
                .C6(1'b0), .C7(1'b0), .C8(1'b0), .C9(1'b0), .C10(1'b0), .C11(1'b0),
                .C12(1'b0), .C13(1'b0), .C14(1'b0), .C15(1'b0), .C16(1'b0), .C17(1'b0),
                .P0(product[0]), .P1(product[1]), .P2(product[2]), .P3(product[3]), .P4(product[4]), .P5(product[5]),
                .P6(product[6]), .P7(product[7]), .P8(product[8]), .P9(product[9]), .P10(product[10]), .P11(product[11]),
                .P12(product[12]), .P13(product[13]), .P14(product[14]), .P15(product[15]), .P16(product[16]), .P17(product[17]),
                .P18(product[18]), .P19(product[19]), .P20(product[20])
            );
        end
    endgenerate
endmodule
