// Lattice's MULT18X18D as the gateware uses it: operands from the fabric, no pipeline register, no C, no shift chains.
//
// Written from FPGA-TN-02205, "ECP5 and ECP5-5G sysDSP Usage Guide": each of the registers A, B and output is
// there unless its REG_..._CLK is "NONE", loads where its clock enable is high, and clears synchronously on its reset.
module MULT18X18D #(
    parameter REG_INPUTA_CLK = "NONE", REG_INPUTA_CE = "CE0", REG_INPUTA_RST = "RST0",
    parameter REG_INPUTB_CLK = "NONE", REG_INPUTB_CE = "CE0", REG_INPUTB_RST = "RST0",
    parameter REG_INPUTC_CLK = "NONE", REG_INPUTC_CE = "CE0", REG_INPUTC_RST = "RST0",
    parameter REG_PIPELINE_CLK = "NONE", REG_PIPELINE_CE = "CE0", REG_PIPELINE_RST = "RST0",
    parameter REG_OUTPUT_CLK = "NONE", REG_OUTPUT_CE = "CE0", REG_OUTPUT_RST = "RST0",
    parameter GSR = "ENABLED", RESETMODE = "SYNC"
) (
    input A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16, A17,
    input B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, B12, B13, B14, B15, B16, B17,
    input C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13, C14, C15, C16, C17,
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
    input CLK0, CLK1, CLK2, CLK3, CE0, CE1, CE2, CE3, RST0, RST1, RST2, RST3,
    output P0, P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13, P14, P15, P16, P17, P18, P19, P20, P21, P22,
    P23, P24, P25, P26, P27, P28, P29, P30, P31, P32, P33, P34, P35
);
    function enable(input [8*3-1:0] name);
        enable = name == "CE0" ? CE0 : name == "CE1" ? CE1 : name == "CE2" ? CE2 : CE3;
    endfunction
    function cleared(input [8*4-1:0] name);
        cleared = name == "RST0" ? RST0 : name == "RST1" ? RST1 : name == "RST2" ? RST2 : RST3;
    endfunction

    wire [17:0] a_pins = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
    wire [17:0] b_pins = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
    reg signed [18:0] a_register, b_register;
    reg [35:0] output_register;
    wire signed [18:0] a_extended = {SIGNEDA & a_pins[17], a_pins};
    wire signed [18:0] b_extended = {SIGNEDB & b_pins[17], b_pins};
    wire signed [18:0] a = REG_INPUTA_CLK == "NONE" ? a_extended : a_register;
    wire signed [18:0] b = REG_INPUTB_CLK == "NONE" ? b_extended : b_register;
    wire signed [37:0] product = a * b;
    always @(posedge CLK0) begin
        if (cleared(REG_INPUTA_RST)) a_register <= 0;
        else if (enable(REG_INPUTA_CE)) a_register <= a_extended;
        if (cleared(REG_INPUTB_RST)) b_register <= 0;
        else if (enable(REG_INPUTB_CE)) b_register <= b_extended;
        if (cleared(REG_OUTPUT_RST)) output_register <= 0;
        else if (enable(REG_OUTPUT_CE)) output_register <= product[35:0];
    end
    assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15,
    P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = REG_OUTPUT_CLK == "NONE" ? product[35:0] :
    output_register;

    // What is not modelled must not be used.
    initial begin
        if (REG_PIPELINE_CLK != "NONE" || REG_INPUTC_CLK != "NONE" || RESETMODE != "SYNC") begin
            $display("MULT18X18D: the model has neither pipeline register nor C nor asynchronous reset");
            $finish;
        end
    end
    always @(posedge CLK0) if (SOURCEA | SOURCEB) begin
        $display("MULT18X18D: the model has no shift chains");
        $finish;
    end
endmodule
