// Sends the commands of a small network to the coprocessor and compares all of memory with what it must be then.
//
// Plain Verilog, for Icarus Verilog and Verilator (see Makefile). It prints one line that begins with PASS or FAIL.
// commands.hex: instruction word, rs1, rs2 of each command, as a core would issue them. memory.hex, expected.hex: memory
// before and after, from {{BASE}} on. {{ORIGIN}}
// A testbench sets its variables at once, as a program does.
/* verilator lint_off BLKSEQ */
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
{% if BUS_CLOCK %}
  reg {{BUS_CLOCK}};
  initial {{BUS_CLOCK}} = 1'b0;
  always #7 {{BUS_CLOCK}} = ~{{BUS_CLOCK}};
{% endif %}

  reg [8*BUS_BYTES-1:0] expected [0:WORDS-1];
  initial $readmemh("expected.hex", expected);

  // Who sends the commands, and through what.
  wire        done, refused;
  wire [31:0] index;       // of the command under way
{{PORT_WIRES}}
{{HOST}}

  // What stands on the memory bus.
  wire        idle, fault, progress, broken, irq;
  wire [3:0]  fault_code;
  wire [31:0] fault_address;
  wire [20:0] status;
{{BUS_WIRES}}
  tilewright_coprocessor dut (
    .clk(clk), .rst(rst),
{% if BUS_CLOCK %}
    .{{BUS_CLOCK}}({{BUS_CLOCK}}),
{% endif %}
{{PORT_PORTS}}
    .stop_request(1'b0),
{% if WINDOWS %}
{{WINDOWS}}
{% endif %}
{{BUS_PORTS}}
    .idle(idle), .irq(irq), .fault(fault), .fault_code(fault_code), .fault_address(fault_address), .status(status),
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
    if (!rst) begin
      if (fault) begin
        $display("fault code %0d at address %h", fault_code, fault_address);
        fail("the coprocessor has stopped with a fault; status", {11'd0, status});
      end
      if (refused) fail("a command was not taken or answered as it must be, number", index);
      if (broken) fail("a rule of the bus was broken in cycle", cycles);
      if (cycles > CYCLES_LIMIT) fail("the commands take too long; the one under way is number", index);
      if (done && !failed) compare;
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
      else if (irq) fail("there is an interrupt that no command asked for; progress", {31'd0, progress});
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
/* verilator lint_on BLKSEQ */
