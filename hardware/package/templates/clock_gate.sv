// The core's clock gate for an FPGA: always open, so that core and coprocessor share one clock net.
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
