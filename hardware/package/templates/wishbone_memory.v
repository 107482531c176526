// A memory on Wishbone B4, pipelined mode, for the testbench: it stalls, and answers late.
module wishbone_memory #(
  parameter BUS_BYTES = 4,
  parameter WORDS     = 1024,
  parameter BASE      = 32'h80000000,
  parameter LATENCY   = 4                // cycles from a request to its answer
) (
  input  wire                   clk,
  input  wire                   rst,
  input  wire                   cyc,
  input  wire                   stb,
  input  wire                   we,
  input  wire [31:0]            adr,
  input  wire [BUS_BYTES-1:0]   sel,
  input  wire [8*BUS_BYTES-1:0] dat_w,
  output wire [8*BUS_BYTES-1:0] dat_r,
  output wire                   ack,
  output wire                   err,
  output wire                   stall,
  output reg                    broken   // the master has asked outside a cycle, or left one with answers due
);
  reg [8*BUS_BYTES-1:0] words [0:WORDS-1];
  initial $readmemh("memory.hex", words);

  // Pauses: a shift register with feedback, so that every simulator has the same.
  reg [15:0] noise;
  always @(posedge clk)
    if (rst) noise <= 16'hace1;
    else     noise <= {noise[14:0], noise[15] ^ noise[13] ^ noise[12] ^ noise[10]};

  // Answers on their way: what was asked LATENCY cycles ago is at index 0.
  reg [8*BUS_BYTES-1:0] data [0:LATENCY-1];
  reg [LATENCY-1:0]     acks, errs;
  wire                  taken     = cyc && stb && !stall;
  wire                  in_memory = adr >= BASE && (adr - BASE) / BUS_BYTES < WORDS;
  integer               lane, step;
  assign stall = noise[2:1] == 2'b00;
  assign ack   = acks[0];
  assign err   = errs[0];
  assign dat_r = data[0];

  always @(posedge clk) begin
    for (step = 0; step < LATENCY - 1; step = step + 1) data[step] <= data[step + 1];
    data[LATENCY-1] <= in_memory ? words[(adr - BASE) / BUS_BYTES] : {BUS_BYTES{8'h00}};
    if (rst) begin
      acks   <= {LATENCY{1'b0}};
      errs   <= {LATENCY{1'b0}};
      broken <= 1'b0;
    end else begin
      acks <= {taken && in_memory, acks[LATENCY-1:1]};
      errs <= {taken && !in_memory, errs[LATENCY-1:1]};
      if (taken && we && in_memory)
        for (lane = 0; lane < BUS_BYTES; lane = lane + 1)
          if (sel[lane]) words[(adr - BASE) / BUS_BYTES][8*lane +: 8] <= dat_w[8*lane +: 8];
      if (!cyc && (stb || acks != 0 || errs != 0)) broken <= 1'b1;
    end
  end
endmodule
