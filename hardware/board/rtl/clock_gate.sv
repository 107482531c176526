// The core's clock gate on an FPGA: always open, as the program never sleeps and clocks there have wires of their own.
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
