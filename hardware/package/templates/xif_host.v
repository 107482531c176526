// The host core's part of CV-X-IF: one command after the other, each issued, committed and answered.
module xif_host #(
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
  output wire [3:0]  issue_id,
  output wire [31:0] issue_rs1,
  output wire [31:0] issue_rs2,
  output wire [1:0]  issue_rs_valid,
  input  wire        issue_accept,
  input  wire        issue_writeback,
  output wire        commit_valid,
  output wire [3:0]  commit_id,
  output wire        commit_kill,
  input  wire        result_valid,
  output wire        result_ready,
  input  wire [3:0]  result_id,
  input  wire [4:0]  result_rd,
  input  wire        result_we,
  input  wire [31:0] result_data
);
  localparam [1:0] ISSUE = 2'd0, COMMIT = 2'd1, RESULT = 2'd2, DONE = 2'd3;

  reg [95:0] commands [0:COMMANDS-1];
  initial $readmemh("commands.hex", commands);

  reg  [1:0]  state;
  reg  [3:0]  id;
  wire [95:0] command = commands[index];

  assign done           = state == DONE;
  assign issue_valid    = !rst && state == ISSUE;
  assign issue_instr    = command[95:64];
  assign issue_rs1      = command[63:32];
  assign issue_rs2      = command[31:0];
  assign issue_rs_valid = 2'b11;
  assign issue_id       = id;
  assign commit_valid   = state == COMMIT;
  assign commit_id      = id;
  assign commit_kill    = 1'b0;
  assign result_ready   = 1'b1;

  always @(posedge clk)
    if (rst) begin
      state  <= ISSUE;
      index  <= 0;
      id     <= 4'd0;
      broken <= 1'b0;
    end else begin
      if (state == ISSUE && issue_ready) begin
        // No command here has a destination register.
        if (issue_writeback || !issue_accept) broken <= 1'b1;
        state <= COMMIT;
      end
      if (state == COMMIT) state <= RESULT;
      if (state == RESULT && result_valid) begin
        if (result_we || result_rd != 5'd0 || result_data != 32'd0 || result_id != id) broken <= 1'b1;
        id    <= id + 4'd1;
        index <= index + 1;
        state <= index == COMMANDS - 1 ? DONE : ISSUE;
      end
    end
endmodule
