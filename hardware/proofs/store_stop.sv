// The store unit in a halt: from the third cycle on it offers words, and none with a byte but one that stood before.
module top(input clk, input [73:0] command, input offered, input read_ready, input read_valid, input [31:0] read_data,
           input request_ready, input word_ready, input writer_idle, input available, input halt);
  reg first = 1;
  always @(posedge clk) first <= 0;

  wire valid, halts;
  wire [35:0] word;
  dut store(.clk(clk), .rst(first), .commands__payload(command), .commands__valid(offered), .store_read__ready(read_ready),
    .store_data__valid(read_valid), .store_data__payload(read_data), .write_request__ready(request_ready),
    .write_data__ready(word_ready), .write_data__valid(valid), .write_data__payload(word), .writer_idle(writer_idle),
    .out_ready_available(available), .halt(halt), .\halts (halts));

  reg [1:0] age = 0;    // cycles of the halt so far, up to two
  reg stood = 0;        // the word that is offered was before words without bytes began
  always @(posedge clk) begin
    age <= !halt | first ? 0 : age == 2 ? 2 : age + 1;
    stood <= !first & halt & valid & !word_ready & (age < 2 | stood);
  end

  always @* if (!first) begin
    if (halt & age == 2) assert (valid);
    if (halt & age == 2 & !stood) assert (word[35:32] == 0);
    assert (halts == (age != 0));   // the unit's register
    assert (age <= 2);
    cover (halt & age == 2 & !stood & word_ready);
    cover (halt & age == 2 & stood & word[35:32] != 0);
  end
endmodule
