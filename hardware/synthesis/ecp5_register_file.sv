// CV32E40X's register file for ECP5: a LUT RAM per read port, in place of 992 flip-flops and their multiplexers.
//
// Ports and timing are those of the core's cv32e40x_register_file with one write port. Registers are not cleared by
// reset: their contents after it are undefined in RISC-V (privileged architecture, section 3.4).
module ecp5_register_file import cv32e40x_pkg::*; #(
  parameter int unsigned REGFILE_NUM_READ_PORTS = 2
) (
  input  logic                          clk,
  input  logic                          rst_n,
  input  rf_addr_t                      raddr_i [REGFILE_NUM_READ_PORTS],
  output logic [REGFILE_WORD_WIDTH-1:0] rdata_o [REGFILE_NUM_READ_PORTS],
  input  rf_addr_t                      waddr_i [REGFILE_NUM_WRITE_PORTS],
  input  logic [REGFILE_WORD_WIDTH-1:0] wdata_i [REGFILE_NUM_WRITE_PORTS],
  input  logic                          we_i    [REGFILE_NUM_WRITE_PORTS]
);
  for (genvar port = 0; port < REGFILE_NUM_READ_PORTS; port++) begin : gen_copy
    logic [REGFILE_WORD_WIDTH-1:0] words [REGFILE_NUM_WORDS];

    always_ff @(posedge clk) if (we_i[0]) words[waddr_i[0]] <= wdata_i[0];

    assign rdata_o[port] = raddr_i[port] == '0 ? '0 : words[raddr_i[port]];
  end
endmodule
