// Main memory in block RAM: an AXI4 slave for the coprocessor, and a port for the core that never waits.
//
// The AXI side takes INCR bursts of whole words, as the coprocessor sends them, one word a cycle in each direction and
// from burst to burst; a read's first word comes two cycles after its address. Reads have a RAM port of their own.
// Writes share theirs with the core, which goes first.
module board_main_memory #(
  parameter int    BUS_BYTES = 4,
  parameter int    BYTES     = 65536,
  parameter string CONTENTS  = ""
) (
  input  logic                   clk,
  input  logic                   rst_n,

  // AXI4
  input  logic                   arvalid,
  output logic                   arready,
  input  logic [31:0]            araddr,
  input  logic [7:0]             arlen,
  output logic                   rvalid,
  input  logic                   rready,
  output logic [8*BUS_BYTES-1:0] rdata,
  output logic                   rlast,
  input  logic                   awvalid,
  output logic                   awready,
  input  logic [31:0]            awaddr,
  input  logic                   wvalid,
  output logic                   wready,
  input  logic [8*BUS_BYTES-1:0] wdata,
  input  logic [BUS_BYTES-1:0]   wstrb,
  input  logic                   wlast,
  output logic                   bvalid,
  input  logic                   bready,

  // The core: `core_data` is there in the cycle after
  input  logic                   core_use,
  input  logic                   core_write,
  input  logic [31:0]            core_address,
  input  logic [3:0]             core_strobe,
  input  logic [31:0]            core_wdata,
  output logic [31:0]            core_data
);
  localparam int WORDS  = BYTES / BUS_BYTES;
  localparam int INDEX  = $clog2(WORDS);
  localparam int OFFSET = $clog2(BUS_BYTES);

  // ---- reads: an address a cycle, unless a word that has come is not taken
  logic             reading, read;
  logic [INDEX-1:0] read_address;
  logic [7:0]       read_left;

  assign read    = reading && (!rvalid || rready);
  assign arready = !reading || (read && read_left == 0);

  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      reading <= 1'b0;
      rvalid  <= 1'b0;
    end else begin
      if (arready) reading <= arvalid;
      if (read)        rvalid <= 1'b1;
      else if (rready) rvalid <= 1'b0;
    end

  always_ff @(posedge clk) begin
    if (arready) begin
      read_address <= araddr[OFFSET +: INDEX];
      read_left    <= arlen;
    end else if (read) begin
      read_address <= read_address + 1'b1;
      read_left    <= read_left - 1'b1;
    end
    if (read) rlast <= read_left == 0;
  end

  // ---- writes: the burst's last word waits until the response before has been taken
  logic             writing, write;
  logic [INDEX-1:0] write_address;

  assign wready  = writing && !core_use && !(wlast && bvalid && !bready);
  assign write   = wvalid && wready;
  assign awready = !writing || (write && wlast);

  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      writing <= 1'b0;
      bvalid  <= 1'b0;
    end else begin
      if (awready) writing <= awvalid;
      if (write && wlast) bvalid <= 1'b1;
      else if (bready)    bvalid <= 1'b0;
    end

  always_ff @(posedge clk)
    if (awready)    write_address <= awaddr[OFFSET +: INDEX];
    else if (write) write_address <= write_address + 1'b1;

  // ---- the core sees words of 32 bits
  localparam int PARTS = BUS_BYTES / 4;

  logic [BUS_BYTES-1:0]   strobe;
  logic [8*BUS_BYTES-1:0] shared_data;

  if (PARTS == 1) begin : g_narrow
    assign strobe    = core_strobe;
    assign core_data = shared_data;
  end else begin : g_wide
    logic [OFFSET-3:0] part, part_read;
    assign part      = core_address[OFFSET-1:2];
    assign strobe    = BUS_BYTES'(core_strobe) << {part, 2'b00};
    assign core_data = shared_data[{part_read, 5'b0} +: 32];
    always_ff @(posedge clk)
      if (core_use) part_read <= part;
  end

  board_ram #(.WORDS(WORDS), .BYTES(BUS_BYTES), .CONTENTS(CONTENTS)) ram (
    .clk(clk),
    .a_read(read), .a_address(read_address), .a_data(rdata),
    .b_use(core_use || write),
    .b_address(core_use ? core_address[OFFSET +: INDEX] : write_address),
    .b_strobe(core_use ? strobe & {BUS_BYTES{core_write}} : wstrb),
    .b_write(core_use ? {PARTS{core_wdata}} : wdata),
    .b_data(shared_data)
  );
endmodule
