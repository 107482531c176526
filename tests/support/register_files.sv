// The core's register file and the one for ECP5 side by side, with flat ports.
module register_files import cv32e40x_pkg::*; (
  input  logic        clk,
  input  logic        rst,
  input  logic [9:0]  raddr,
  input  logic [4:0]  waddr,
  input  logic [31:0] wdata,
  input  logic        we,
  output logic [63:0] core_rdata,
  output logic [63:0] block_rdata
);
  rf_addr_t    read_address [2];
  rf_addr_t    write_address [1];
  logic [31:0] written [1];
  logic        enable [1];
  logic [31:0] core_read [2];
  logic [31:0] block_read [2];

  assign read_address[0]  = raddr[4:0];
  assign read_address[1]  = raddr[9:5];
  assign write_address[0] = waddr;
  assign written[0]       = wdata;
  assign enable[0]        = we;
  assign core_rdata       = {core_read[1], core_read[0]};
  assign block_rdata      = {block_read[1], block_read[0]};

  cv32e40x_register_file of_core (
    .clk, .rst_n(!rst), .raddr_i(read_address), .rdata_o(core_read), .waddr_i(write_address), .wdata_i(written),
    .we_i(enable));
  ecp5_register_file of_block (
    .clk, .rst_n(!rst), .raddr_i(read_address), .rdata_o(block_read), .waddr_i(write_address), .wdata_i(written),
    .we_i(enable));
endmodule
