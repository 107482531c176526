// RAM with two ports, one to read and one to read or write; block RAM on an FPGA, with its first contents from a file.
module board_ram #(
  parameter int    WORDS    = 1024,
  parameter int    BYTES    = 4,
  parameter string CONTENTS = ""      // hexadecimal, a line per word, all words
) (
  input  logic                     clk,

  // Port a: `a_data` holds what the last cycle with `a_read` asked for.
  input  logic                     a_read,
  input  logic [$clog2(WORDS)-1:0] a_address,
  output logic [8*BYTES-1:0]       a_data,

  // Port b: writes the bytes of `b_strobe`, or reads if there are none.
  input  logic                     b_use,
  input  logic [$clog2(WORDS)-1:0] b_address,
  input  logic [BYTES-1:0]         b_strobe,
  input  logic [8*BYTES-1:0]       b_write,
  output logic [8*BYTES-1:0]       b_data
);
  // No program reads a word in the cycle that writes it: the bus orders them by fences. Logic for that case is left out.
  (* no_rw_check *) logic [8*BYTES-1:0] words [WORDS];

  initial $readmemh(CONTENTS, words);

  always_ff @(posedge clk)
    if (a_read) a_data <= words[a_address];

  always_ff @(posedge clk)
    if (b_use) begin
      for (int i = 0; i < BYTES; i++)
        if (b_strobe[i]) words[b_address][8*i +: 8] <= b_write[8*i +: 8];
      b_data <= words[b_address];
    end
endmodule
