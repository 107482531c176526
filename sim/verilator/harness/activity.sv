// What a simulator that counts toggles adds to the coprocessor; sim/verilog/toggle_probes.py instantiates it.

// How many flip-flops of a group change at the next clock edge.
module tilewright_toggles #(
  parameter int WIDTH = 1,
  parameter int BITS = 20
) (
  input  logic [WIDTH-1:0] held,
  input  logic [WIDTH-1:0] taken,
  output logic [BITS-1:0]  count
);
  assign count = BITS'($countones(held ^ taken));
endmodule

// Adds up the toggles of each block, and notes the sums whenever a status record is taken, and at the end.
module tilewright_activity #(
  parameter int BLOCKS = 1,
  parameter int BITS = 20
) (
  input logic                        clk,
  input logic                        record,
  input logic [BLOCKS-1:0][BITS-1:0] toggles
);
  import "DPI-C" function void tilewright_note_toggles(input int block, input longint unsigned total);

  longint unsigned totals[BLOCKS];

  always_ff @(posedge clk) begin
    for (int block = 0; block < BLOCKS; block++) begin
      totals[block] <= totals[block] + 64'(toggles[block]);
      if (record) tilewright_note_toggles(block, totals[block]);
    end
  end

  final begin
    for (int block = 0; block < BLOCKS; block++) tilewright_note_toggles(block, totals[block]);
  end
endmodule
