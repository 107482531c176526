// The system as the simulator drives it: inputs through registers. With the macro CORE, the module so named is all of it;
// with SOC, the module so named is the system.
//
// The memories answer to earlier cycles only, so every input is known before the clock edge that begins its cycle.
// Taken at that edge, no logic hangs on an input itself, and the simulator need not evaluate twice in each cycle what
// would hang on it: a quarter of its time.
`ifndef SOC
`define SOC tilewright_soc
`endif
module simulated_soc #(
  parameter int BUS_BYTES = 8
) (
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

`ifndef CORE
  output logic [31:0]            m_axi_araddr,
  output logic [7:0]             m_axi_arlen,
  output logic                   m_axi_arvalid,
  input  logic                   m_axi_arready,
  input  logic [8*BUS_BYTES-1:0] m_axi_rdata,
  input  logic [1:0]             m_axi_rresp,
  input  logic                   m_axi_rlast,
  input  logic                   m_axi_rvalid,
  output logic                   m_axi_rready,
  output logic [31:0]            m_axi_awaddr,
  output logic [7:0]             m_axi_awlen,
  output logic                   m_axi_awvalid,
  input  logic                   m_axi_awready,
  output logic [8*BUS_BYTES-1:0] m_axi_wdata,
  output logic [BUS_BYTES-1:0]   m_axi_wstrb,
  output logic                   m_axi_wvalid,
  input  logic                   m_axi_wready,
  input  logic [1:0]             m_axi_bresp,
  input  logic                   m_axi_bvalid,
  output logic                   m_axi_bready,

  input  logic [3:0][31:0] window_base,
  input  logic [3:0][31:0] window_limit,
  input  logic [3:0]       window_readable,
  input  logic [3:0]       window_writable,

  input  logic        irq_timer,
  input  logic        irq_external,
  input  logic        debug_req,
  input  logic        stop_request,
  output logic        asleep,
  output logic        fault,
  output logic [3:0]  fault_code,
  output logic [31:0] fault_address,
  output logic        progress,
  output logic [20:0] status,
`ifdef WAVES
  // For waveforms only: the command that the core offers, those that the units work on, and the layer.
  input  shown_commands::command_t core_command,
  input  shown_commands::command_t load_command,
  input  shown_commands::command_t array_command,
  input  shown_commands::command_t post_command,
  input  shown_commands::command_t store_command,
  input  logic [15:0] layer,
`endif
  output logic [41:0] events,
`endif

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

`ifdef CORE
  `CORE core (
    .rst_n(rst_n_q),
    .instr_gnt(instr_gnt_q), .instr_rvalid(instr_rvalid_q), .instr_rdata(instr_rdata_q), .instr_err(instr_err_q),
    .data_gnt(data_gnt_q), .data_rvalid(data_rvalid_q), .data_rdata(data_rdata_q),
    .clk, .instr_req, .instr_addr, .data_req, .data_addr, .data_we, .data_be, .data_wdata, .retired, .pc
  );
`else
  logic                   arready_q, rlast_q, rvalid_q, awready_q, wready_q, bvalid_q;
  logic [8*BUS_BYTES-1:0] rdata_q;
  logic [1:0]             rresp_q, bresp_q;
  logic [3:0][31:0]       window_base_q, window_limit_q;
  logic [3:0]             window_readable_q, window_writable_q;
  logic                   irq_timer_q, irq_external_q, debug_req_q;

  always_ff @(posedge clk) begin
    {irq_timer_q, irq_external_q, debug_req_q} <= {irq_timer, irq_external, debug_req};
    {arready_q, awready_q, wready_q} <= {m_axi_arready, m_axi_awready, m_axi_wready};
    {rvalid_q, rlast_q, rresp_q} <= {m_axi_rvalid, m_axi_rlast, m_axi_rresp};
    rdata_q <= m_axi_rdata;
    {bvalid_q, bresp_q} <= {m_axi_bvalid, m_axi_bresp};
    {window_readable_q, window_writable_q} <= {window_readable, window_writable};
    window_base_q <= window_base;
    window_limit_q <= window_limit;
  end

  `SOC #(.BUS_BYTES(BUS_BYTES)) soc (
    .rst_n(rst_n_q),
    .instr_gnt(instr_gnt_q), .instr_rvalid(instr_rvalid_q), .instr_rdata(instr_rdata_q), .instr_err(instr_err_q),
    .data_gnt(data_gnt_q), .data_rvalid(data_rvalid_q), .data_rdata(data_rdata_q),
    .m_axi_arready(arready_q), .m_axi_rid(1'b0), .m_axi_rdata(rdata_q), .m_axi_rresp(rresp_q), .m_axi_rlast(rlast_q),
    .m_axi_rvalid(rvalid_q), .m_axi_awready(awready_q), .m_axi_wready(wready_q), .m_axi_bid(1'b0),
    .m_axi_bresp(bresp_q), .m_axi_bvalid(bvalid_q),
    .window_base(window_base_q), .window_limit(window_limit_q),
    .window_readable(window_readable_q), .window_writable(window_writable_q),
    .irq_timer(irq_timer_q), .irq_external(irq_external_q), .debug_req(debug_req_q),
    .m_axi_arid(), .m_axi_arsize(), .m_axi_arburst(), .m_axi_arcache(), .m_axi_arprot(),
    .m_axi_awid(), .m_axi_awsize(), .m_axi_awburst(), .m_axi_awcache(), .m_axi_awprot(), .m_axi_wlast(), .idle(),
    .*
  );
  assign events = soc.coprocessor.events;  // an output that hardware has not (rtl/port/command_watch.py)
`endif
endmodule
