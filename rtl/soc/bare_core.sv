// The host core without a coprocessor: the scalar baseline.
module bare_core (
  input  logic        clk,
  input  logic        rst_n,

  output logic        instr_req,
  input  logic        instr_gnt,
  output logic [31:0] instr_addr,
  input  logic        instr_rvalid,
  input  logic [31:0] instr_rdata,
  input  logic        instr_err,

  output logic        data_req,
  input  logic        data_gnt,
  output logic [31:0] data_addr,
  output logic        data_we,
  output logic [3:0]  data_be,
  output logic [31:0] data_wdata,
  input  logic        data_rvalid,
  input  logic [31:0] data_rdata,

  output logic        retired,
  output logic [31:0] pc
);
  if_xif #(.X_NUM_RS(2), .X_ID_WIDTH(4)) xif ();

  // Nobody is there: with X_EXT = 0 the core looks at none of these.
  assign xif.compressed_ready = 1'b0;
  assign xif.compressed_resp  = '0;
  assign xif.issue_ready      = 1'b0;
  assign xif.issue_resp       = '0;
  assign xif.mem_valid        = 1'b0;
  assign xif.mem_req          = '0;
  assign xif.result_valid     = 1'b0;
  assign xif.result           = '0;

  host_core #(.X_EXT(1'b0)) host (.*);
endmodule
