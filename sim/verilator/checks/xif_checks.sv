// What must hold on CV-X-IF, whatever happens to the core: each accepted instruction is committed or killed once, and
// answered once if it is committed and never otherwise.
//
// This core commits nothing that is flushed while it waits in ID: then the next instruction offered has its id again.
module xif_checks (
  input logic       clk,
  input logic       rst_n,
  input logic       issue_valid,
  input logic       issue_ready,
  input logic [3:0] issue_id,
  input logic       accept,
  input logic       commit_valid,
  input logic [3:0] commit_id,
  input logic       commit_kill,
  input logic       result_valid,
  input logic       result_ready,
  input logic [3:0] result_id
);
  typedef enum logic [1:0] {NONE, ISSUED, COMMITTED} state_t;
  state_t      state [16];
  logic        issued_before;
  logic [3:0]  newest;               // id of the last instruction issued, accepted or not
  int unsigned accepted, committed, killed, vanished, answered;

  wire issue  = issue_valid && issue_ready;
  wire result = result_valid && result_ready;

  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      for (int i = 0; i < 16; i++) state[i] <= NONE;
      issued_before <= 1'b0;
      newest        <= '0;
      {accepted, committed, killed, vanished, answered} <= '0;
    end else begin
      if (result) begin
        answered         <= answered + 1;
        state[result_id] <= NONE;
      end
      if (commit_valid && state[commit_id] == ISSUED) begin
        if (commit_kill) killed    <= killed + 1;
        else             committed <= committed + 1;
        state[commit_id] <= commit_kill ? NONE : COMMITTED;
      end
      if (issue) begin
        issued_before   <= 1'b1;
        newest          <= issue_id;
        accepted        <= accepted + 32'(accept);
        vanished        <= vanished + 32'(state[issue_id] == ISSUED && !(commit_valid && commit_id == issue_id));
        state[issue_id] <= accept ? ISSUED : NONE;
      end
    end

  a_only_the_newest_vanishes: assert property (@(posedge clk) disable iff (!rst_n)
    issue && state[issue_id] == ISSUED && !(commit_valid && commit_id == issue_id)
    |-> issued_before && newest == issue_id)
    else $error("an instruction vanished behind another");
  a_id_is_free: assert property (@(posedge clk) disable iff (!rst_n)
    issue && state[issue_id] == COMMITTED |-> result && result_id == issue_id)
    else $error("an id came again before its result");
  a_committed_once: assert property (@(posedge clk) disable iff (!rst_n)
    commit_valid |-> state[commit_id] != COMMITTED)
    else $error("an instruction was committed or killed twice");
  a_only_committed_are_answered: assert property (@(posedge clk) disable iff (!rst_n)
    result_valid |-> state[result_id] == COMMITTED)
    else $error("a result for an instruction that was not committed, or a second one");

  final $display("xif: %0d accepted, %0d committed, %0d killed, %0d vanished, %0d answered", accepted, committed,
                 killed, vanished, answered);
endmodule

bind tilewright_soc xif_checks xif_checks (.*);
