// A whole system for a board: host core, coprocessor, memories in block RAM, UART; only the pins are the board's.
//
//   0x0000_0000  RAM: code, data, stack      0x2000_0000  devices (board_devices.sv)      0x8000_0000  main memory
//
// No access waits, and memories repeat up to the next region: the host program, which is part of the design, keeps to them.
module board_soc #(
  parameter int BUS_BYTES      = 4,
  parameter int RAM_BYTES      = 32768,
  parameter int MAIN_BYTES     = 81920,
  parameter int CYCLES_PER_BIT = 217    // of the UART, until the program says another
) (
  input  logic       clk,
  input  logic       rst_n,
  input  logic       uart_rx,
  output logic       uart_tx,
  output logic [7:0] lamps            // 7: the coprocessor has stopped at a fault; others are the program's
);
  localparam int RAM_INDEX = $clog2(RAM_BYTES / 4);

  logic                   instr_req, instr_rvalid, data_req, data_we, data_rvalid;
  logic [31:0]            instr_addr, instr_rdata, data_addr, data_wdata, data_rdata;
  logic [3:0]             data_be;
  logic                   arvalid, arready, rvalid, rready, rlast, awvalid, awready, wvalid, wready, wlast, bvalid, bready;
  logic [31:0]            araddr, awaddr;
  logic [7:0]             arlen;
  logic [8*BUS_BYTES-1:0] rdata, wdata;
  logic [BUS_BYTES-1:0]   wstrb;
  logic [3:0][31:0]       window_base, window_limit;
  logic [3:0]             window_readable, window_writable, fault_code;
  logic                   fault;
  logic [31:0]            fault_address;

  tilewright_soc #(.BUS_BYTES(BUS_BYTES), .INTERRUPTS(1'b0)) soc (
    .clk(clk), .rst_n(rst_n),
    .instr_req(instr_req), .instr_gnt(1'b1), .instr_addr(instr_addr), .instr_rvalid(instr_rvalid),
    .instr_rdata(instr_rdata), .instr_err(1'b0),
    .data_req(data_req), .data_gnt(1'b1), .data_addr(data_addr), .data_we(data_we), .data_be(data_be),
    .data_wdata(data_wdata), .data_rvalid(data_rvalid), .data_rdata(data_rdata),
    .m_axi_arid(), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(), .m_axi_arburst(), .m_axi_arcache(),
    .m_axi_arprot(), .m_axi_arvalid(arvalid), .m_axi_arready(arready),
    .m_axi_rid(1'b0), .m_axi_rdata(rdata), .m_axi_rresp(2'b00), .m_axi_rlast(rlast), .m_axi_rvalid(rvalid),
    .m_axi_rready(rready),
    .m_axi_awid(), .m_axi_awaddr(awaddr), .m_axi_awlen(), .m_axi_awsize(), .m_axi_awburst(), .m_axi_awcache(),
    .m_axi_awprot(), .m_axi_awvalid(awvalid), .m_axi_awready(awready),
    .m_axi_wdata(wdata), .m_axi_wstrb(wstrb), .m_axi_wlast(wlast), .m_axi_wvalid(wvalid), .m_axi_wready(wready),
    .m_axi_bid(1'b0), .m_axi_bresp(2'b00), .m_axi_bvalid(bvalid), .m_axi_bready(bready),
    .window_base(window_base), .window_limit(window_limit),
    .window_readable(window_readable), .window_writable(window_writable),
    .irq_timer(1'b0), .irq_external(1'b0), .debug_req(1'b0),
    .stop_request(1'b0), .fault(fault), .fault_code(fault_code), .fault_address(fault_address),
    .retired(), .asleep(), .pc(), .idle(), .progress(), .status()
  );

  logic        to_ram, to_devices, to_main;
  logic [31:0] ram_data, device_data, main_data;

  assign to_main    = data_req && data_addr[31];
  assign to_devices = data_req && !data_addr[31] && data_addr[29];
  assign to_ram     = data_req && !data_addr[31] && !data_addr[29];

  board_ram #(.WORDS(RAM_BYTES / 4), .BYTES(4), .CONTENTS("program.hex")) ram (
    .clk(clk),
    .a_read(instr_req), .a_address(instr_addr[2 +: RAM_INDEX]), .a_data(instr_rdata),
    .b_use(to_ram), .b_address(data_addr[2 +: RAM_INDEX]), .b_strobe(data_be & {4{data_we}}), .b_write(data_wdata),
    .b_data(ram_data)
  );

  board_main_memory #(.BUS_BYTES(BUS_BYTES), .BYTES(MAIN_BYTES), .CONTENTS("main.hex")) main_memory (
    .clk(clk), .rst_n(rst_n),
    .arvalid(arvalid), .arready(arready), .araddr(araddr), .arlen(arlen),
    .rvalid(rvalid), .rready(rready), .rdata(rdata), .rlast(rlast),
    .awvalid(awvalid), .awready(awready), .awaddr(awaddr),
    .wvalid(wvalid), .wready(wready), .wdata(wdata), .wstrb(wstrb), .wlast(wlast), .bvalid(bvalid), .bready(bready),
    .core_use(to_main), .core_write(data_we), .core_address(data_addr), .core_strobe(data_be), .core_wdata(data_wdata),
    .core_data(main_data)
  );

  board_devices #(.CYCLES_PER_BIT(CYCLES_PER_BIT)) devices (
    .clk(clk), .rst_n(rst_n),
    .core_use(to_devices), .core_write(data_we), .core_address(data_addr[7:0]), .core_wdata(data_wdata),
    .core_data(device_data),
    .uart_rx(uart_rx), .uart_tx(uart_tx), .lamps(lamps[6:0]),
    .window_base(window_base), .window_limit(window_limit),
    .window_readable(window_readable), .window_writable(window_writable),
    .fault(fault), .fault_code(fault_code), .fault_address(fault_address)
  );

  assign lamps[7] = fault;

  // Every access is answered in the next cycle.
  logic from_main, from_devices;

  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      instr_rvalid <= 1'b0;
      data_rvalid  <= 1'b0;
      from_main    <= 1'b0;
      from_devices <= 1'b0;
    end else begin
      instr_rvalid <= instr_req;
      data_rvalid  <= data_req;
      from_main    <= to_main;
      from_devices <= to_devices;
    end

  assign data_rdata = from_main ? main_data : from_devices ? device_data : ram_data;
endmodule
