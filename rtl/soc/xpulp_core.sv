// The XPULP baseline's core: an unmodified CV32E40P with the SIMD instructions of PULP, ports as those of host_core.
module xpulp_core (
  input  logic        clk,
  input  logic        rst_n,

  output logic        instr_req,
  input  logic        instr_gnt,
  output logic [31:0] instr_addr,
  input  logic        instr_rvalid,
  input  logic [31:0] instr_rdata,
  input  logic        instr_err,    // this core knows no errors on its buses

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
  cv32e40p_core #(.COREV_PULP(1), .FPU(0), .NUM_MHPMCOUNTERS(1)) core (
    .clk_i(clk), .rst_ni(rst_n), .pulp_clock_en_i(1'b0), .scan_cg_en_i(1'b0),
    .boot_addr_i(32'h80), .mtvec_addr_i(32'h0), .dm_halt_addr_i(32'h0), .hart_id_i(32'h0), .dm_exception_addr_i(32'h0),
    .instr_req_o(instr_req), .instr_gnt_i(instr_gnt), .instr_rvalid_i(instr_rvalid), .instr_addr_o(instr_addr),
    .instr_rdata_i(instr_rdata),
    .data_req_o(data_req), .data_gnt_i(data_gnt), .data_rvalid_i(data_rvalid), .data_we_o(data_we), .data_be_o(data_be),
    .data_addr_o(data_addr), .data_wdata_o(data_wdata), .data_rdata_i(data_rdata),
    .apu_busy_o(), .apu_req_o(), .apu_gnt_i(1'b0), .apu_operands_o(), .apu_op_o(), .apu_flags_o(),
    .apu_rvalid_i(1'b0), .apu_result_i(32'h0), .apu_flags_i('0),
    .irq_i(32'h0), .irq_ack_o(), .irq_id_o(),
    .debug_req_i(1'b0), .debug_havereset_o(), .debug_running_o(), .debug_halted_o(),
    .fetch_enable_i(1'b1), .core_sleep_o()
  );

  assign retired = core.mhpmevent_minstret;
  assign pc      = core.pc_id;
endmodule

// Its clock gate, always open, as that of the host core (clock_gate.sv).
module cv32e40p_clock_gate (
  input  logic clk_i,
  input  logic en_i,
  input  logic scan_cg_en_i,
  output logic clk_o
);
  assign clk_o = clk_i;
endmodule
