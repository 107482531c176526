// The module of rtl/tilewright_memory.v of macros that OpenRAM made for sky130: 1024 words of 8 bits for memories of
// bytes, else 512 words of 32 bits, each with a port that writes bytes (0) and one that reads (1), in as many columns
// and rows as the memory needs. Give this file in its place, with the macros' own Verilog, LEF and Liberty files.
// Another process has other macros: state their sizes and connect their pins where these stand.
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
  output wire [WIDTH-1:0]           read_data
);
  localparam BITS = WIDTH <= 8 ? 8 : 32;
  localparam PLACES = WIDTH <= 8 ? 10 : 9;  // of a macro's address
  localparam COLUMNS = (WIDTH + BITS - 1) / BITS;
  localparam ROWS = (DEPTH + (1 << PLACES) - 1) >> PLACES;

  // Narrow memories use the lower bits of a word. Granules are whole bytes, or there is one.
  wire [BITS * COLUMNS-1:0] data_in = write_data;
  wire [BITS / 8 * COLUMNS-1:0] bytes;
  wire [31:0] write_from = write_address;
  wire [31:0] read_from = read_address;
  reg [31:0] row_read;
  wire [BITS * COLUMNS * ROWS-1:0] row_data;
  wire [BITS * COLUMNS-1:0] fresh = row_data[BITS * COLUMNS * row_read +: BITS * COLUMNS];
  reg [WIDTH-1:0] kept;
  reg was_read;

  // A macro gives a word for one cycle.
  assign read_data = was_read ? fresh[WIDTH-1:0] : kept;
  always @(posedge clk) begin
    was_read <= read;
    if (read) row_read <= read_from >> PLACES;
    if (was_read) kept <= fresh[WIDTH-1:0];
  end

  genvar i, column, row;
  generate
    for (i = 0; i < BITS / 8 * COLUMNS; i = i + 1) begin : byte_enables
      if (8 * i < WIDTH) assign bytes[i] = write[8 * i / GRANULE];
      else assign bytes[i] = 1'b0;
    end
    for (row = 0; row < ROWS; row = row + 1) begin : rows
      wire unwritten = ~(|write && write_from >> PLACES == row);
      wire unread = ~(read && read_from >> PLACES == row);
      for (column = 0; column < COLUMNS; column = column + 1) begin : columns
        if (BITS == 8)
          sky130_sram_1kbyte_1rw1r_8x1024_8 macro (
            .clk0(clk), .csb0(unwritten), .web0(1'b0), .wmask0(bytes[column]), .addr0(write_from[9:0]),
            .din0(data_in[8 * column +: 8]), .dout0(), .clk1(clk), .csb1(unread), .addr1(read_from[9:0]),
            .dout1(row_data[8 * (COLUMNS * row + column) +: 8]));
        else
          sky130_sram_2kbyte_1rw1r_32x512_8 macro (
            .clk0(clk), .csb0(unwritten), .web0(1'b0), .wmask0(bytes[4 * column +: 4]), .addr0(write_from[8:0]),
            .din0(data_in[32 * column +: 32]), .dout0(), .clk1(clk), .csb1(unread), .addr1(read_from[8:0]),
            .dout1(row_data[32 * (COLUMNS * row + column) +: 32]));
      end
    end
  endgenerate
endmodule
