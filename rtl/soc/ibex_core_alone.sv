// A host core without CV-X-IF: an unmodified Ibex, RV32IMC, two stages; ports as those of host_core.
//
// Its clock is not gated, its memories have no integrity bits, it has no instruction cache and no PMP.
module ibex_core_alone import ibex_pkg::*; (
  input  logic        clk,
  input  logic        rst_n,

  // Code, read only
  output logic        instr_req,
  input  logic        instr_gnt,
  output logic [31:0] instr_addr,
  input  logic        instr_rvalid,
  input  logic [31:0] instr_rdata,
  input  logic        instr_err,

  // Data
  output logic        data_req,
  input  logic        data_gnt,
  output logic [31:0] data_addr,
  output logic        data_we,
  output logic [3:0]  data_be,
  output logic [31:0] data_wdata,
  input  logic        data_rvalid,
  input  logic [31:0] data_rdata,
  input  logic        data_err,

  // Interrupts as in mip, and debug
  input  logic [31:0] irq,
  input  logic        debug_req,
  output logic        asleep,

  // Observation
  output logic        retired,
  output logic [31:0] pc
);
  logic [4:0]  raddr_a, raddr_b, waddr;
  logic [31:0] rdata_a, rdata_b, wdata;
  logic        we;
  ibex_mubi_t  busy;

  // Under this name, as one of its messages looks it up.
  ibex_core #(.RV32M(RV32MFast)) u_ibex_core (
    .clk_i(clk), .rst_ni(rst_n), .hart_id_i(32'h0), .boot_addr_i(32'h0),
    .instr_req_o(instr_req), .instr_gnt_i(instr_gnt), .instr_rvalid_i(instr_rvalid), .instr_addr_o(instr_addr),
    .instr_rdata_i(instr_rdata), .instr_err_i(instr_err),
    .data_req_o(data_req), .data_gnt_i(data_gnt), .data_rvalid_i(data_rvalid), .data_we_o(data_we), .data_be_o(data_be),
    .data_addr_o(data_addr), .data_wdata_o(data_wdata), .data_rdata_i(data_rdata), .data_err_i(data_err),
    .dummy_instr_id_o(), .dummy_instr_wb_o(),
    .rf_raddr_a_o(raddr_a), .rf_raddr_b_o(raddr_b), .rf_waddr_wb_o(waddr), .rf_we_wb_o(we), .rf_wdata_wb_ecc_o(wdata),
    .rf_rdata_a_ecc_i(rdata_a), .rf_rdata_b_ecc_i(rdata_b),
    .ic_tag_req_o(), .ic_tag_write_o(), .ic_tag_addr_o(), .ic_tag_wdata_o(), .ic_tag_rdata_i('{default: '0}),
    .ic_data_req_o(), .ic_data_write_o(), .ic_data_addr_o(), .ic_data_wdata_o(), .ic_data_rdata_i('{default: '0}),
    .ic_scr_key_valid_i(1'b1), .ic_scr_key_req_o(),
    .irq_software_i(irq[3]), .irq_timer_i(irq[7]), .irq_external_i(irq[11]), .irq_fast_i(irq[30:16]), .irq_nm_i(1'b0),
    .irq_pending_o(), .debug_req_i(debug_req), .crash_dump_o(), .double_fault_seen_o(),
    .fetch_enable_i(IbexMuBiOn), .alert_minor_o(), .alert_major_internal_o(), .alert_major_bus_o(), .core_busy_o(busy)
  );

  ibex_register_file_ff #(.DataWidth(32)) registers (
    .clk_i(clk), .rst_ni(rst_n), .test_en_i(1'b0), .dummy_instr_id_i(1'b0), .dummy_instr_wb_i(1'b0),
    .raddr_a_i(raddr_a), .rdata_a_o(rdata_a), .raddr_b_i(raddr_b), .rdata_b_o(rdata_b),
    .waddr_a_i(waddr), .wdata_a_i(wdata), .we_a_i(we), .err_o()
  );

  assign asleep  = busy == IbexMuBiOff;
  assign retired = u_ibex_core.perf_instr_ret_wb;
  assign pc      = u_ibex_core.pc_id;    // a load or store is in ID until it is answered
endmodule
