// The host core, an unmodified CV32E40X, with its unused inputs tied off and what a simulator wants to see brought out.
//
// Without INTERRUPTS it looks at neither irq nor debug_req. A debug request halts it at DEBUG_HALT.
//
// X_EXT = 1 offers custom instructions on CV-X-IF, of which a coprocessor needs these signals: it accepts, and its
// fence writes the fault code back. With X_EXT = 0, the scalar baseline, the core looks at none of their inputs.
module host_core import cv32e40x_pkg::*; #(
  parameter bit          X_EXT      = 1'b0,
  parameter bit          INTERRUPTS = 1'b0,
  parameter logic [31:0] DEBUG_HALT = 32'h1a11_0800
) (
  input  logic        clk,
  input  logic        rst_n,

  // OBI: code, read only
  output logic        instr_req,
  input  logic        instr_gnt,
  output logic [31:0] instr_addr,
  input  logic        instr_rvalid,
  input  logic [31:0] instr_rdata,
  input  logic        instr_err,

  // OBI: data
  output logic        data_req,
  input  logic        data_gnt,
  output logic [31:0] data_addr,
  output logic        data_we,
  output logic [3:0]  data_be,
  output logic [31:0] data_wdata,
  input  logic        data_rvalid,
  input  logic [31:0] data_rdata,

  // Interrupts as in mip, and debug
  input  logic [31:0] irq,
  input  logic        debug_req,
  output logic        asleep,       // its clock may stop

  // Observation
  output logic        retired,      // an instruction retires in this cycle
  output logic [31:0] pc,           // of the instruction in EX: the one that makes a data request

  // CV-X-IF: issue, commit, result
  output logic        issue_valid,
  input  logic        issue_ready,
  output logic [31:0] issue_instr,
  output logic [3:0]  issue_id,
  output logic [31:0] issue_rs1,
  output logic [31:0] issue_rs2,
  output logic [1:0]  issue_rs_valid,
  input  logic        accept,
  input  logic        writeback,
  output logic        commit_valid,
  output logic [3:0]  commit_id,
  output logic        commit_kill,
  input  logic        result_valid,
  output logic        result_ready,
  input  logic [3:0]  result_id,
  input  logic [4:0]  result_rd,
  input  logic        result_we,
  input  logic [31:0] result_data
);
  if_xif #(.X_NUM_RS(2), .X_ID_WIDTH(4)) xif ();

  assign issue_valid     = xif.issue_valid;
  assign issue_instr     = xif.issue_req.instr;
  assign issue_id        = xif.issue_req.id;
  assign issue_rs1       = xif.issue_req.rs[0];
  assign issue_rs2       = xif.issue_req.rs[1];
  assign issue_rs_valid  = xif.issue_req.rs_valid;
  assign xif.issue_ready = issue_ready;

  // No memory access, no exception.
  always_comb begin
    xif.issue_resp           = '0;
    xif.issue_resp.accept    = accept;
    xif.issue_resp.writeback = writeback;
  end

  assign commit_valid = xif.commit_valid;
  assign commit_id    = xif.commit.id;
  assign commit_kill  = xif.commit.commit_kill;

  assign xif.result_valid = result_valid;
  assign result_ready     = xif.result_ready;
  always_comb begin
    xif.result      = '0;
    xif.result.id   = result_id;
    xif.result.rd   = result_rd;
    xif.result.we   = result_we;
    xif.result.data = result_data;
  end

  assign xif.compressed_ready = 1'b1;
  assign xif.compressed_resp  = '0;
  assign xif.mem_valid        = 1'b0;
  assign xif.mem_req          = '0;

  cv32e40x_core #(
    .M_EXT(M), .B_EXT(B_NONE), .X_EXT(X_EXT), .X_NUM_RS(2), .X_ID_WIDTH(4), .NUM_MHPMCOUNTERS(0),
    .DBG_NUM_TRIGGERS(0)
  ) core (
    .clk_i(clk), .rst_ni(rst_n), .scan_cg_en_i(1'b0),
    .boot_addr_i(32'h80), .mtvec_addr_i(32'h0), 
    .dm_exception_addr_i(DEBUG_HALT + 32'h8), .dm_halt_addr_i(DEBUG_HALT),
    .mhartid_i(32'h0), .mimpid_patch_i(4'h0),
    .instr_req_o(instr_req), .instr_gnt_i(instr_gnt), .instr_addr_o(instr_addr),
    .instr_memtype_o(), .instr_prot_o(), .instr_dbg_o(),
    .instr_rvalid_i(instr_rvalid), .instr_rdata_i(instr_rdata), .instr_err_i(instr_err),
    .data_req_o(data_req), .data_gnt_i(data_gnt), .data_addr_o(data_addr), .data_be_o(data_be), .data_we_o(data_we),
    .data_wdata_o(data_wdata), .data_memtype_o(), .data_prot_o(), .data_dbg_o(), .data_atop_o(),
    .data_rvalid_i(data_rvalid), .data_rdata_i(data_rdata), .data_err_i(1'b0), .data_exokay_i(1'b0),
    .mcycle_o(),
    .xif_compressed_if(xif), .xif_issue_if(xif), .xif_commit_if(xif),
    .xif_mem_if(xif), .xif_mem_result_if(xif), .xif_result_if(xif),
    .irq_i(INTERRUPTS ? irq : 32'h0), .wu_wfe_i(1'b0),
    .clic_irq_i(1'b0), .clic_irq_id_i('0), .clic_irq_level_i('0), .clic_irq_priv_i('0), .clic_irq_shv_i(1'b0),
    .fencei_flush_req_o(), .fencei_flush_ack_i(1'b1),
    .debug_req_i(INTERRUPTS && debug_req), .debug_havereset_o(), .debug_running_o(), .debug_halted_o(),
    .fetch_enable_i(1'b1), .core_sleep_o(asleep)
  );

  // Not ctrl_fsm.mhpmevent: a structure that is looked into from outside is not taken apart (cv32e40x.vlt).
  assign retired = core.controller_i.controller_fsm_i.wb_counter_event_gated;
  assign pc      = core.id_ex_pipe.pc;
endmodule
