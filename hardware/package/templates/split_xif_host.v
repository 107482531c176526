// The host core's part of CV-X-IF 1.0: one command after the other. Every second one has its operands with its issue, as a
// core without a split interface sends them, and is committed then; the others have them after their commit.
module split_xif_host #(
  parameter COMMANDS = 1
) (
  input  wire        clk,
  input  wire        rst,
  output reg  [31:0] index,      // of the command under way
  output wire        done,
  output reg         broken,     // a command was not accepted, or a result is not as it must be
  output wire        issue_valid,
  input  wire        issue_ready,
  output wire [31:0] issue_instr,
  output wire [31:0] issue_hartid,
  output wire [3:0]  issue_id,
  input  wire        issue_accept,
  input  wire        issue_writeback,
  input  wire [1:0]  issue_register_read,
  output wire        register_valid,
  input  wire        register_ready,
  output wire [31:0] register_hartid,
  output wire [3:0]  register_id,
  output wire [31:0] register_rs1,
  output wire [31:0] register_rs2,
  output wire [1:0]  register_rs_valid,
  output wire        commit_valid,
  output wire [31:0] commit_hartid,
  output wire [3:0]  commit_id,
  output wire        commit_kill,
  input  wire        result_valid,
  output wire        result_ready,
  input  wire [31:0] result_hartid,
  input  wire [3:0]  result_id,
  input  wire [31:0] result_data,
  input  wire [4:0]  result_rd,
  input  wire        result_we
);
  localparam [2:0] ISSUE = 3'd0, COMMIT = 3'd1, OPERANDS = 3'd2, RESULT = 3'd3, DONE = 3'd4;
  localparam [31:0] HART = 32'd3;

  reg [95:0] commands [0:COMMANDS-1];
  initial $readmemh("commands.hex", commands);

  reg  [2:0]  state;
  reg  [3:0]  id;
  wire [95:0] command = commands[index];
  wire        at_issue = !index[0];

  assign done              = state == DONE;
  assign issue_valid       = !rst && state == ISSUE;
  assign issue_instr       = command[95:64];
  assign issue_hartid      = HART;
  assign issue_id          = id;
  assign register_valid    = at_issue ? issue_valid : state == OPERANDS;
  assign register_hartid   = HART;
  assign register_id       = id;
  assign register_rs1      = command[63:32];
  assign register_rs2      = command[31:0];
  assign register_rs_valid = 2'b11;
  assign commit_valid      = at_issue ? issue_valid : state == COMMIT;
  assign commit_hartid     = HART;
  assign commit_id         = id;
  assign commit_kill       = 1'b0;
  assign result_ready      = 1'b1;

  always @(posedge clk)
    if (rst) begin
      state  <= ISSUE;
      index  <= 0;
      id     <= 4'd0;
      broken <= 1'b0;
    end else begin
      if (state == ISSUE && issue_ready) begin
        // No command here has a destination register.
        if (issue_writeback || !issue_accept || issue_register_read != 2'b11) broken <= 1'b1;
        state <= at_issue ? RESULT : COMMIT;
      end
      if (state == COMMIT) state <= OPERANDS;
      if (state == OPERANDS) state <= RESULT;
      if (register_valid && register_ready != (issue_ready || state == OPERANDS)) broken <= 1'b1;
      if (state == RESULT && result_valid) begin
        if (result_we || result_rd != 5'd0 || result_data != 32'd0 || result_id != id || result_hartid != HART)
          broken <= 1'b1;
        id    <= id + 4'd2;
        index <= index + 1;
        state <= index == COMMANDS - 1 ? DONE : ISSUE;
      end
    end
endmodule
