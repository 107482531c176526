// A memory with a read port and a write port in one clock: every buffer of the coprocessor is an instance. Replace the
// body by macros, as macros/sky130_memory.v does; what the coprocessor relies on:
// - Where `read` is high at an edge, `read_data` is the word from then on, until the next edge with `read` high.
// - Bit i of `write` writes bits i * GRANULE to (i + 1) * GRANULE - 1 of the word.
// - Nobody uses a word that is written at the edge at which it is read, nor what a word holds before it is written.
module tilewright_memory #(
  parameter DEPTH = 32,
  parameter WIDTH = 8,
  parameter GRANULE = 8,
  parameter ADDRESS = 5
) (
  input  wire                       clk,
  input  wire [WIDTH / GRANULE-1:0] write,
  input  wire [ADDRESS-1:0]         write_address,
  input  wire [WIDTH-1:0]           write_data,
  input  wire                       read,
  input  wire [ADDRESS-1:0]         read_address,
  output reg  [WIDTH-1:0]           read_data
);
  reg [WIDTH-1:0] words [0:DEPTH-1];
  integer part;

  always @(posedge clk) begin
    for (part = 0; part < WIDTH / GRANULE; part = part + 1)
      if (write[part]) words[write_address][part * GRANULE +: GRANULE] <= write_data[part * GRANULE +: GRANULE];
    if (read) read_data <= words[read_address];
  end

`ifndef SYNTHESIS
  integer word;
  initial for (word = 0; word < DEPTH; word = word + 1) words[word] = {WIDTH{1'b0}};
`endif
endmodule
