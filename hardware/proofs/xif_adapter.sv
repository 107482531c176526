// The adapter beside any core that keeps the interface's rules: at most two instructions issued and not yet committed, one of
// them still in ID; commits in order, each after the cycle of its issue; one flushed in ID is followed by one with its id.
module top(input clk, input offer, input [31:0] instr, input [31:0] rs1, input [31:0] rs2, input [1:0] rs_valid,
           input advance, input flush, input commit, input kill, input result_ready, input wanted, input idle,
           input [3:0] fault_code, input mark);
  reg first = 1;
  always @(posedge clk) first <= 0;

  wire issue_ready, accept, writeback, result_valid, result_we, valid, waits, abort, newer_valid, older_valid;
  wire [3:0] result_id, committed_level, answers_level;
  wire committed_room, committed_some;
  wire [4:0] result_rd;
  wire [31:0] result_data;
  wire [73:0] head, word0, word1, word2, word3, word4, word5, word6, word7;
  wire [12:0] answer0, answer1, answer2, answer3, answer4, answer5, answer6, answer7;
  wire [83:0] newer, older;
  wire [2:0] write_place, read_place, answers_end, answers_place;

  // The core: what is issued and in ID, what has gone on to EX, and the id of what is in ID.
  reg in_id = 0, in_ex = 0, id_ours, ex_ours;
  reg [3:0] number = 0, ex_number;
  reg [4:0] id_rd, ex_rd;
  reg [73:0] id_command, ex_command;
  wire issue_valid = offer & !in_id & !first;
  wire issue = issue_valid & issue_ready;
  wire commit_valid = commit & in_ex & !first;
  wire takes = commit_valid & ex_ours & !kill;
  wire ex_aborts = ex_command[2:0] == 6 & ex_command[5:3] == 7 & ex_command[10], aborts = takes & ex_aborts;
  wire issued = in_id | issue, goes = advance & issued & (!in_ex | commit_valid) & !first;
  wire [73:0] command = {rs2, rs1, instr[28:25], instr[31:29], instr[14:12]};
  always @(posedge clk) if (!first) begin
    in_ex <= goes | (in_ex & !commit_valid);
    if (goes) begin
      ex_ours <= issue ? accept : id_ours;
      ex_rd <= issue ? instr[11:7] : id_rd;
      ex_command <= issue ? command : id_command;
      ex_number <= number;
      number <= number + 1;
    end
    in_id <= issued & !goes & !flush;
    if (issue) begin
      id_ours <= accept;
      id_rd <= instr[11:7];
      id_command <= command;
    end
  end

  dut adapter(.clk(clk), .rst(first), .issue_valid(issue_valid), .issue_ready(issue_ready), .issue_instr(instr),
    .issue_id(number), .issue_rs1(rs1), .issue_rs2(rs2), .issue_rs_valid(rs_valid), .accept(accept),
    .writeback(writeback), .commit_valid(commit_valid), .commit_id(ex_number), .commit_kill(kill),
    .result_valid(result_valid), .result_ready(result_ready), .result_id(result_id), .result_rd(result_rd),
    .result_we(result_we), .result_data(result_data), .commands__payload(head), .commands__valid(valid),
    .commands__ready(wanted), .idle(idle), .fault_code(fault_code), .waits(waits),
    .abort(abort),
    .newer(newer), .newer_valid(newer_valid), .older(older), .older_valid(older_valid),
    .\committed.has_room (committed_room), .\committed.has_entry (committed_some),
    .\committed.level (committed_level), .\committed.w_port__addr (write_place), .\committed.consume (read_place),
    .\committed.storage[0] (word0), .\committed.storage[1] (word1), .\committed.storage[2] (word2),
    .\committed.storage[3] (word3), .\committed.storage[4] (word4), .\committed.storage[5] (word5),
    .\committed.storage[6] (word6), .\committed.storage[7] (word7),
    .\answers.level (answers_level), .\answers.w_port__addr (answers_end), .\answers.r_port__addr (answers_place),
    .\answers.storage[0] (answer0), .\answers.storage[1] (answer1), .\answers.storage[2] (answer2),
    .\answers.storage[3] (answer3), .\answers.storage[4] (answer4), .\answers.storage[5] (answer5),
    .\answers.storage[6] (answer6), .\answers.storage[7] (answer7));

  // One instruction that is committed, at an arbitrary moment, is followed: `ahead` commands leave before it, and
  // `due` results.
  wire leaves = valid & wanted & !first, answers = result_valid & result_ready & !first;
  reg [3:0] held = 0, owed = 0, ahead, due;
  reg marked = 0, gone = 0, answered = 0;
  reg [73:0] followed;
  reg [12:0] answer;                                              // its id, rd and the fault code then
  always @(posedge clk) if (!first) begin
    held <= aborts ? 0 : held + takes - leaves;
    owed <= owed + takes - answers;
    if (takes & mark & !marked & !aborts) begin
      marked <= 1;
      followed <= ex_command;
      answer <= {fault_code, ex_rd, ex_number};
      ahead <= held - leaves;
      due <= owed - answers;
    end else if (marked) begin
      if (!gone & leaves) begin gone <= ahead == 0; ahead <= ahead - 1; end
      if (aborts) gone <= 1;                                      // forgotten
      if (!answered & answers) begin answered <= due == 0; due <= due - 1; end
    end
  end

  // What the core waits for comes: while an offer waits, every act of the others brings `rest` closer to zero.
  wire [5:0] rest = 3 * in_ex + held + owed;
  wire offers_abort = instr[14:12] == 6 & instr[31:29] == 7 & rs1[0];
  wire waits_for_all = instr[14:12] == 6 & instr[31:29] == 7 & !rs1[0] & !rs1[1];
  wire blocked = issue_valid & !issue_ready;
  reg was_blocked = 0, had_moved, result_stood = 0;
  reg [5:0] rest_before;
  reg [12:0] result_before;
  always @(posedge clk) begin
    was_blocked <= blocked & !first;
    had_moved <= leaves | answers | commit_valid;
    rest_before <= rest;
    result_stood <= result_valid & !result_ready & !first;
    result_before <= {result_data[3:0], result_rd, result_id};
  end

  // What the queues hold, where.
  wire [2:0] place = read_place + ahead[2:0], answers_at = answers_place + due[2:0];
  wire [2:0] next_place = read_place + committed_level[2:0], next_answer = answers_place + answers_level[2:0];
  wire [73:0] kept = place[2] ? (place[1] ? (place[0] ? word7 : word6) : place[0] ? word5 : word4)
                              : (place[1] ? (place[0] ? word3 : word2) : place[0] ? word1 : word0);
  wire [73:0] first_kept = read_place[2] ? (read_place[1] ? (read_place[0] ? word7 : word6) : read_place[0] ? word5 : word4)
                                         : (read_place[1] ? (read_place[0] ? word3 : word2) : read_place[0] ? word1 : word0);
  wire [12:0] kept_answer = answers_at[2] ? (answers_at[1] ? (answers_at[0] ? answer7 : answer6)
                                                           : answers_at[0] ? answer5 : answer4)
                                          : (answers_at[1] ? (answers_at[0] ? answer3 : answer2)
                                                           : answers_at[0] ? answer1 : answer0);
  wire id_aborts = id_command[2:0] == 6 & id_command[5:3] == 7 & id_command[10];
  wire [3:0] uncommitted = (in_ex & ex_ours) + (in_id & id_ours);
  wire [3:0] entering = (in_ex & ex_ours & !ex_aborts) + (in_id & id_ours & !id_aborts);
  reg aborted = 0;
  always @(posedge clk) aborted <= aborts & !first;
  wire ex_is_newer = newer_valid & newer[3:0] == ex_number;

  always @* if (!first) begin
    // Commands: one for each instruction accepted and committed, none for others, none before; in order. An abort is none:
    // it is told when it is committed, waits for no command, and nothing before it is left.
    assert (abort == aborts);
    if (aborted) assert (!valid);
    if (issue_valid & accept & waits == 1 & offers_abort & rs_valid == 3) assert (owed > 5);
    assert (valid == (held != 0) & held <= 8);
    if (marked & !gone) assert (ahead < held);
    if (marked & !gone & valid & ahead == 0) assert (head == followed);
    // Results: the same, at once, and they stand.
    assert (result_valid == (owed != 0) & owed <= 8);
    if (marked & !answered) assert (due < owed);
    if (marked & !answered & due == 0) assert (answer == {result_data[3:0], result_rd, result_id});
    if (result_stood) assert (result_valid & result_before == {result_data[3:0], result_rd, result_id});
    if (result_valid) assert (result_we == (result_rd != 0) & result_data[31:4] == 0);
    // Offers: what is not ours never waits; a fence passes nothing.
    if (issue_valid) assert (accept ? writeback == (instr[11:7] != 0) : issue_ready & !writeback);
    if (accept) assert (instr[6:0] == 7'h0b & (instr[11:7] == 0 | (instr[14:12] == 6 & instr[31:29] == 7)));
    if (issue & accept) assert (rs_valid == 3);
    if (issue & accept & waits_for_all) assert (idle & held == 0 & !in_ex);
    assert (waits == blocked);
    // No deadlock.
    if (was_blocked) assert (rest <= rest_before & (!had_moved | rest < rest_before));
    if (issue_valid & rest == 0 & rs_valid == 3 & (idle | !waits_for_all)) assert (issue_ready);
    // Invariants.
    assert (committed_room == (committed_level != 8) & committed_some == (committed_level != 0));
    assert (held == committed_level & next_place == write_place);
    if (valid) assert (head == first_kept);
    assert (owed == answers_level & next_answer == answers_end);
    assert (held + entering <= 7 & owed + uncommitted <= 7);
    if (marked & !gone) assert (kept == followed);
    if (marked & !answered) assert (kept_answer == answer);
    if (in_id) assert (newer_valid & newer == {id_command, id_rd, id_ours, number});
    if (in_ex) assert (ex_number + 4'd1 == number);
    if (in_ex & ex_is_newer) assert (newer == {ex_command, ex_rd, ex_ours, ex_number});
    if (in_ex & !ex_is_newer) assert (older_valid & older == {ex_command, ex_rd, ex_ours, ex_number});
    if (in_ex & newer_valid & !ex_is_newer) assert (newer[3:0] == number);
    if (!in_ex & newer_valid) assert (newer[3:0] == number);
    assert (older_valid == (in_ex & !ex_is_newer));
    cover (gone & answered & in_ex & in_id);
    cover (blocked & accept & !waits_for_all & rs_valid == 3);
    cover (blocked & waits_for_all & rest == 3 & rs_valid == 3 & idle);
    cover (aborts & held == 5);
    cover (issue & newer_valid & newer[3:0] == number & in_ex);          // one vanished in ID
  end
endmodule
