// A memory behind AXI4 for the testbench: one burst at a time each way, late, and with pauses where they may be.
module axi_memory #(
  parameter BUS_BYTES = 4,
  parameter WORDS     = 1024,
  parameter BASE      = 32'h80000000,
  parameter LATENCY   = 8               // cycles from an address to its first word, and from the last word to B
) (
  input  wire                   clk,
  input  wire                   rst,
  input  wire                   arid,
  input  wire [31:0]            araddr,
  input  wire [7:0]             arlen,
  input  wire [2:0]             arsize,
  input  wire [1:0]             arburst,
  // verilator lint_off UNUSEDSIGNAL
  input  wire [3:0]             arcache,   // for interconnects
  input  wire [2:0]             arprot,
  // verilator lint_on UNUSEDSIGNAL
  input  wire                   arvalid,
  output wire                   arready,
  output wire                   rid,
  output reg  [8*BUS_BYTES-1:0] rdata,
  output reg  [1:0]             rresp,
  output reg                    rlast,
  output reg                    rvalid,
  input  wire                   rready,
  input  wire                   awid,
  input  wire [31:0]            awaddr,
  input  wire [7:0]             awlen,
  input  wire [2:0]             awsize,
  input  wire [1:0]             awburst,
  // verilator lint_off UNUSEDSIGNAL
  input  wire [3:0]             awcache,
  input  wire [2:0]             awprot,
  // verilator lint_on UNUSEDSIGNAL
  input  wire                   awvalid,
  output wire                   awready,
  input  wire [8*BUS_BYTES-1:0] wdata,
  input  wire [BUS_BYTES-1:0]   wstrb,
  input  wire                   wlast,
  input  wire                   wvalid,
  output wire                   wready,
  output wire                   bid,
  output reg  [1:0]             bresp,
  output reg                    bvalid,
  input  wire                   bready,
  output wire                   broken     // the master has broken a rule, or asked for what it never asks for
);
  localparam [1:0] OKAY = 2'b00, DECERR = 2'b11, INCR = 2'b01;
  localparam [2:0] SIZE = BUS_BYTES == 4 ? 3'd2 : BUS_BYTES == 8 ? 3'd3 : BUS_BYTES == 16 ? 3'd4 : BUS_BYTES == 32 ? 3'd5 : 3'd6;

  reg [8*BUS_BYTES-1:0] words [0:WORDS-1];
  initial $readmemh("memory.hex", words);

  // Pauses: a shift register with feedback, so that every simulator has the same.
  reg [15:0] noise;
  always @(posedge clk)
    if (rst) noise <= 16'hace1;
    else     noise <= {noise[14:0], noise[15] ^ noise[13] ^ noise[12] ^ noise[10]};

  function in_memory;
    input [31:0] address;
    in_memory = address >= BASE && (address - BASE) / BUS_BYTES < WORDS;
  endfunction

  assign rid = 1'b0;  // the only one
  assign bid = 1'b0;
  wire unsound = (arvalid && (arid || arsize != SIZE || arburst != INCR)) ||
                 (awvalid && (awid || awsize != SIZE || awburst != INCR));
  reg  uneven;          // a burst written has another length than it said
  assign broken = unsound || uneven;

  // Reads.
  reg        reading;
  reg [31:0] read_address, read_wait;
  reg [7:0]  read_left;
  assign arready = !reading && noise[1];
  always @(posedge clk)
    if (rst) begin
      reading <= 1'b0;
      rvalid  <= 1'b0;
      {read_address, read_wait, read_left, rdata, rresp, rlast} <= 0;
    end else begin
      if (arvalid && arready) begin
        reading      <= 1'b1;
        read_address <= araddr;
        read_left    <= arlen;
        read_wait    <= LATENCY;
      end else if (reading && read_wait != 0)
        read_wait <= read_wait - 1;
      if (!rvalid || rready) begin
        rvalid <= 1'b0;
        if (reading && read_wait == 0 && noise[3:2] != 2'b00) begin
          rvalid       <= 1'b1;
          rdata        <= in_memory(read_address) ? words[(read_address - BASE) / BUS_BYTES] : {BUS_BYTES{8'h00}};
          rresp        <= in_memory(read_address) ? OKAY : DECERR;
          rlast        <= read_left == 0;
          read_address <= read_address + BUS_BYTES;
          read_left    <= read_left - 8'd1;
          reading      <= read_left != 0;
        end
      end
    end

  // Writes.
  reg        writing, responding;
  reg [31:0] write_address, write_wait;
  reg [7:0]  write_left;
  integer    lane;
  assign awready = !writing && !responding && noise[4];
  assign wready  = writing && noise[6:5] != 2'b00;
  always @(posedge clk)
    if (rst) begin
      writing    <= 1'b0;
      responding <= 1'b0;
      bvalid     <= 1'b0;
      uneven     <= 1'b0;
      {write_address, write_wait, write_left, bresp} <= 0;
    end else begin
      if (awvalid && awready) begin
        writing       <= 1'b1;
        write_address <= awaddr;
        write_left    <= awlen;
        bresp         <= OKAY;
      end
      if (wvalid && wready) begin
        for (lane = 0; lane < BUS_BYTES; lane = lane + 1)
          if (wstrb[lane] && in_memory(write_address))
            words[(write_address - BASE) / BUS_BYTES][8*lane +: 8] <= wdata[8*lane +: 8];
        if (!in_memory(write_address)) bresp <= DECERR;
        if (wlast != (write_left == 0)) uneven <= 1'b1;
        write_address <= write_address + BUS_BYTES;
        write_left    <= write_left - 8'd1;
        if (write_left == 0) begin
          writing    <= 1'b0;
          responding <= 1'b1;
          write_wait <= LATENCY;
        end
      end
      if (responding && write_wait != 0) write_wait <= write_wait - 1;
      if (responding && write_wait == 0) bvalid <= 1'b1;
      if (bvalid && bready) begin
        bvalid     <= 1'b0;
        responding <= 1'b0;
      end
    end
endmodule
