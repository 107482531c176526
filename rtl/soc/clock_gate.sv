// The core's clock gate, always open: core and coprocessor share one clock, and an FPGA's clocks have wires of their own.
// Replace it by a clock buffer with enable (BUFGCE, DCCA) or a library's cell if the core is to save power asleep.
module cv32e40x_clock_gate #(
  parameter int LIB = 0
) (
  input  logic clk_i,
  input  logic en_i,
  input  logic scan_cg_en_i,
  output logic clk_o
);
  assign clk_o = clk_i;
endmodule
