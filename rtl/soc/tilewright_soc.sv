// The system: host core and coprocessor on CV-X-IF; all memories are outside.
module tilewright_soc #(
  parameter int BUS_BYTES  = 8,
  parameter bit INTERRUPTS = 1'b1    // whether the core looks at interrupts and debug requests
) (
  input  logic        clk,
  input  logic        rst_n,

  // OBI: code
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

  // AXI4: the coprocessor's way to main memory
  output logic                   m_axi_arid,
  output logic [31:0]            m_axi_araddr,
  output logic [7:0]             m_axi_arlen,
  output logic [2:0]             m_axi_arsize,
  output logic [1:0]             m_axi_arburst,
  output logic [3:0]             m_axi_arcache,
  output logic [2:0]             m_axi_arprot,
  output logic                   m_axi_arvalid,
  input  logic                   m_axi_arready,
  input  logic                   m_axi_rid,
  input  logic [8*BUS_BYTES-1:0] m_axi_rdata,
  input  logic [1:0]             m_axi_rresp,
  input  logic                   m_axi_rlast,
  input  logic                   m_axi_rvalid,
  output logic                   m_axi_rready,
  output logic                   m_axi_awid,
  output logic [31:0]            m_axi_awaddr,
  output logic [7:0]             m_axi_awlen,
  output logic [2:0]             m_axi_awsize,
  output logic [1:0]             m_axi_awburst,
  output logic [3:0]             m_axi_awcache,
  output logic [2:0]             m_axi_awprot,
  output logic                   m_axi_awvalid,
  input  logic                   m_axi_awready,
  output logic [8*BUS_BYTES-1:0] m_axi_wdata,
  output logic [BUS_BYTES-1:0]   m_axi_wstrb,
  output logic                   m_axi_wlast,
  output logic                   m_axi_wvalid,
  input  logic                   m_axi_wready,
  input  logic                   m_axi_bid,
  input  logic [1:0]             m_axi_bresp,
  input  logic                   m_axi_bvalid,
  output logic                   m_axi_bready,

  // What the coprocessor may reach; set before reset is released
  input  logic [3:0][31:0] window_base,
  input  logic [3:0][31:0] window_limit,
  input  logic [3:0]       window_readable,
  input  logic [3:0]       window_writable,

  // Levels, each high until software has dealt with its cause
  input  logic        irq_timer,
  input  logic        irq_external,
  input  logic        debug_req,

  // Stops the coprocessor alone, as a fault does; tie it low where nobody needs it
  input  logic        stop_request,

  output logic        fault,
  output logic [3:0]  fault_code,
  output logic [31:0] fault_address,

  // Observation
  output logic        retired,
  output logic        asleep,
  output logic [31:0] pc,
  output logic        idle,
  output logic        progress,
  output logic [20:0] status
);
  logic        issue_valid, issue_ready, accept, commit_valid, commit_kill, result_valid, result_ready;
  logic [31:0] issue_instr, issue_rs1, issue_rs2;
  logic        writeback, result_we;
  logic [31:0] result_data;
  logic [4:0]  result_rd;
  logic [3:0]  issue_id, commit_id, result_id;
  logic [1:0]  issue_rs_valid;

  // The coprocessor's interrupt is the first of the platform's own, bit 16 of mip.
  logic        coprocessor_irq;
  wire  [31:0] irq = 32'(coprocessor_irq) << 16 | 32'(irq_external) << 11 | 32'(irq_timer) << 7;

  host_core #(.X_EXT(1'b1), .INTERRUPTS(INTERRUPTS)) host (.*);

  // The coprocessor's reset is synchronous. As a register it also spares the simulator looking through all logic
  // behind it whenever any input of this module moves.
  logic rst;
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) rst <= 1'b1;
    else        rst <= 1'b0;

  coprocessor coprocessor (
    .clk(clk), .rst(rst),
    .issue_valid(issue_valid), .issue_ready(issue_ready), .issue_instr(issue_instr), .issue_id(issue_id),
    .issue_rs1(issue_rs1), .issue_rs2(issue_rs2), .issue_rs_valid(issue_rs_valid), .accept(accept),
    .commit_valid(commit_valid), .commit_id(commit_id), .commit_kill(commit_kill),
    .result_valid(result_valid), .result_ready(result_ready), .result_id(result_id),
    .writeback(writeback), .result_rd(result_rd), .result_we(result_we), .result_data(result_data),
    .stop_request(stop_request), .irq(coprocessor_irq),
    .windows__0({window_writable[0], window_readable[0], window_limit[0], window_base[0]}),
    .windows__1({window_writable[1], window_readable[1], window_limit[1], window_base[1]}),
    .windows__2({window_writable[2], window_readable[2], window_limit[2], window_base[2]}),
    .windows__3({window_writable[3], window_readable[3], window_limit[3], window_base[3]}),
    .fault(fault), .fault_code(fault_code), .fault_address(fault_address),
    .idle(idle), .progress(progress), .status(status),
    .m_axi__arid(m_axi_arid), .m_axi__araddr(m_axi_araddr), .m_axi__arlen(m_axi_arlen), .m_axi__arsize(m_axi_arsize),
    .m_axi__arburst(m_axi_arburst), .m_axi__arcache(m_axi_arcache), .m_axi__arprot(m_axi_arprot),
    .m_axi__arvalid(m_axi_arvalid), .m_axi__arready(m_axi_arready),
    .m_axi__rid(m_axi_rid), .m_axi__rdata(m_axi_rdata), .m_axi__rresp(m_axi_rresp), .m_axi__rlast(m_axi_rlast),
    .m_axi__rvalid(m_axi_rvalid), .m_axi__rready(m_axi_rready),
    .m_axi__awid(m_axi_awid), .m_axi__awaddr(m_axi_awaddr), .m_axi__awlen(m_axi_awlen), .m_axi__awsize(m_axi_awsize),
    .m_axi__awburst(m_axi_awburst), .m_axi__awcache(m_axi_awcache), .m_axi__awprot(m_axi_awprot),
    .m_axi__awvalid(m_axi_awvalid), .m_axi__awready(m_axi_awready),
    .m_axi__wdata(m_axi_wdata), .m_axi__wstrb(m_axi_wstrb), .m_axi__wlast(m_axi_wlast), .m_axi__wvalid(m_axi_wvalid),
    .m_axi__wready(m_axi_wready),
    .m_axi__bid(m_axi_bid), .m_axi__bresp(m_axi_bresp), .m_axi__bvalid(m_axi_bvalid), .m_axi__bready(m_axi_bready)
  );
endmodule
