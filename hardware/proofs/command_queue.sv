// A command that enters the queue at an arbitrary moment leaves it once, unchanged, when those before it have left.
module top(input clk, input [73:0] command, input offered, input wanted, input mark);
  reg first = 1;
  always @(posedge clk) first <= 0;

  wire ready, valid, empty;
  wire [73:0] head, word0, word1, word2;
  wire [1:0] write_place, read_place, inner;
  dut queue(.clk(clk), .rst(first), .i__payload(command), .i__valid(offered), .i__ready(ready),
            .o__payload(head), .o__valid(valid), .o__ready(wanted), .empty(empty),
            .\fifo.storage[0] (word0), .\fifo.storage[1] (word1), .\fifo.storage[2] (word2),
            .\fifo.w_port__addr (write_place), .\fifo.r_port__addr (read_place), .\fifo.inner_level (inner));

  wire enters = offered & ready & !first, leaves = valid & wanted & !first;
  reg [2:0] held = 0;                 // commands in the queue
  reg marked = 0;                     // one of them is followed: `ahead` others leave before it
  reg gone = 0;
  reg [2:0] ahead;
  reg [73:0] followed;
  always @(posedge clk) if (!first) begin
    held <= held + enters - leaves;
    if (enters & mark & !marked) begin
      marked <= 1;
      followed <= command;
      ahead <= held - leaves;
    end else if (marked & !gone & leaves) begin
      gone <= ahead == 0;
      ahead <= ahead - 1;
    end
  end

  // What the queue holds, where.
  wire [2:0] place = ahead - valid;
  wire [2:0] sum = read_place + place, full = read_place + inner;
  wire [2:0] wrapped = sum >= 3 ? sum - 3 : sum;
  wire [73:0] kept = wrapped == 0 ? word0 : wrapped == 1 ? word1 : word2;

  always @* if (!first) begin
    assert (empty == (held == 0));                                    // the count that fences rely on
    if (valid) assert (held != 0);                                    // nothing is made up or doubled
    if (marked & !gone) assert (ahead < held);                        // nothing is lost
    if (marked & !gone & valid & ahead == 0) assert (head == followed); // nothing is changed or reordered
    if (held < 3) assert (ready);                                     // and it takes commands while there is room
    // Invariants.
    assert (held == inner + valid & inner <= 3 & read_place < 3 & write_place < 3);
    assert (write_place == (full >= 3 ? full - 3 : full));
    if (marked & !gone & !(valid & ahead == 0)) assert (kept == followed);
    cover (gone & held == 4);
    cover (marked & !gone & ahead == 3);
  end
endmodule
