// A core alone as the simulator drives it: inputs through registers, as in simulated_soc.sv. CORE names the module.
module simulated_core (
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
  logic        rst_n_q, instr_gnt_q, instr_rvalid_q, instr_err_q, data_gnt_q, data_rvalid_q;
  logic [31:0] instr_rdata_q, data_rdata_q;

  always_ff @(posedge clk) begin
    rst_n_q <= rst_n;
    {instr_gnt_q, instr_rvalid_q, instr_err_q, instr_rdata_q} <= {instr_gnt, instr_rvalid, instr_err, instr_rdata};
    {data_gnt_q, data_rvalid_q, data_rdata_q} <= {data_gnt, data_rvalid, data_rdata};
  end

  `CORE core (
    .rst_n(rst_n_q),
    .instr_gnt(instr_gnt_q), .instr_rvalid(instr_rvalid_q), .instr_rdata(instr_rdata_q), .instr_err(instr_err_q),
    .data_gnt(data_gnt_q), .data_rvalid(data_rvalid_q), .data_rdata(data_rdata_q),
    .*
  );
endmodule
