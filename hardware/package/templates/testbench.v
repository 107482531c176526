// Sends the commands of a small network to the coprocessor and compares all of memory with what it must be then.
//
// Plain Verilog, for Icarus Verilog and Verilator (see Makefile). It prints one line that begins with PASS or FAIL.
// commands.hex: instruction word, rs1, rs2 of each command, as a core would issue them. memory.hex, expected.hex: memory
// before and after, from {{BASE}} on. {{ORIGIN}}
module testbench;
  localparam        BUS_BYTES    = {{BUS_BYTES}};
  localparam        COMMANDS     = {{COMMANDS}};
  localparam        WORDS        = {{WORDS}};
  localparam [31:0] BASE         = {{BASE}};
  localparam        CYCLES_LIMIT = {{CYCLES_LIMIT}};

  reg clk, rst;
  initial clk = 1'b0;
  initial rst = 1'b1;
  always #5 clk = ~clk;

  reg [95:0]            commands [0:COMMANDS-1];
  reg [8*BUS_BYTES-1:0] expected [0:WORDS-1];
  initial begin
    $readmemh("commands.hex", commands);
    $readmemh("expected.hex", expected);
  end

  // The host core's part of CV-X-IF: one command after the other, each issued, committed and answered.
  localparam [1:0] ISSUE = 2'd0, COMMIT = 2'd1, RESULT = 2'd2, DONE = 2'd3;
  reg  [1:0]  state;
  reg  [31:0] index;       // of the command under way
  reg  [3:0]  id;
  wire [95:0] command = commands[index];
  wire        issue_ready, issue_accept, result_valid;
  wire [3:0]  result_id;
  wire        issue_writeback, result_we;
  wire [4:0]  result_rd;
  wire [31:0] result_data;

  // What stands on the memory bus.
  wire        idle, fault, progress, broken;
  wire [3:0]  fault_code;
  wire [31:0] fault_address;
  wire [20:0] status;
{{BUS_WIRES}}
  tilewright_coprocessor dut (
    .clk(clk), .rst(rst),
    .xif_issue_valid(!rst && state == ISSUE), .xif_issue_ready(issue_ready), .xif_issue_instr(command[95:64]),
    .xif_issue_id(id), .xif_issue_rs1(command[63:32]), .xif_issue_rs2(command[31:0]), .xif_issue_rs_valid(2'b11),
    .xif_issue_accept(issue_accept),
    .xif_commit_valid(state == COMMIT), .xif_commit_id(id), .xif_commit_kill(1'b0),
    .xif_result_valid(result_valid), .xif_result_ready(1'b1), .xif_result_id(result_id),
    .xif_issue_writeback(issue_writeback), .xif_result_rd(result_rd), .xif_result_we(result_we),
    .xif_result_data(result_data), .stop_request(1'b0),
{{WINDOWS}}
{{BUS_PORTS}}
    .idle(idle), .fault(fault), .fault_code(fault_code), .fault_address(fault_address), .status(status),
    .progress(progress)
  );

{{MEMORY}}
  integer cycles, word, wrong;
  reg     failed;
  initial cycles = 0;
  initial failed = 1'b0;
  initial #42 rst = 1'b0;

  always @(posedge clk) begin
    cycles <= cycles + 1;
    if (rst) begin
      state <= ISSUE;
      index <= 0;
      id    <= 4'd0;
    end else begin
      if (state == ISSUE && issue_ready) begin
        if (issue_writeback) fail("a command has a destination register, number", index);
        if (!issue_accept) fail("a command was not accepted", index);
        state <= COMMIT;
      end
      if (state == COMMIT) state <= RESULT;
      if (state == RESULT && result_valid) begin
        // No command here has a destination register, and none fails.
        if (result_we || result_rd != 5'd0 || result_data != 32'd0) fail("a result has data, number", result_data);
        if (result_id != id) fail("a result has the wrong id, number", {28'd0, result_id});
        id    <= id + 4'd1;
        index <= index + 1;
        state <= index == COMMANDS - 1 ? DONE : ISSUE;
      end
      if (fault) begin
        $display("fault code %0d at address %h", fault_code, fault_address);
        fail("the coprocessor has stopped with a fault; status", {11'd0, status});
      end
      if (broken) fail("a rule of the bus was broken in cycle", cycles);
      if (cycles > CYCLES_LIMIT) fail("the commands take too long; the one under way is number", index);
      if (state == DONE && !failed) compare;
    end
  end

  // The last command was a fence, so every write has been acknowledged.
  task compare;
    begin
      wrong = 0;
      for (word = 0; word < WORDS; word = word + 1)
        if (memory.words[word] !== expected[word]) begin
          if (wrong < 5)
            $display("memory at %h: %h, expected %h", BASE + word * BUS_BYTES, memory.words[word], expected[word]);
          wrong = wrong + 1;
        end
      if (!idle) fail("the coprocessor is not idle after a fence; progress", {31'd0, progress});
      else if (wrong != 0) fail("words of memory are not as expected:", wrong);
      else begin
        $display("PASS: %0d commands in %0d cycles, all %0d words of memory as expected", COMMANDS, cycles, WORDS);
        $finish;
      end
    end
  endtask

  task fail;
    input [8*64-1:0] what;
    input [31:0]     number;
    begin
      failed = 1'b1;
      $display("FAIL: %0s %0d", what, number);
      $finish;
    end
  endtask
endmodule
