// AXI4's rules for a master, for all requests and words to write; memory keeps one rule: no B before the last W of a burst.
module top(input clk, input [47:0] read, input read_valid, input [47:0] write, input write_valid, input read_ready,
           input [71:0] word, input word_valid, input arready, input [63:0] rdata, input [1:0] rresp, input rlast,
           input rvalid, input awready, input wready, input [1:0] bresp, input bvalid, input halt, input clears,
           input mark, input mark_read);
  reg first = 1;
  always @(posedge clk) first <= 0;

  wire read_asks, write_idle, has_orphans, read_ends, read_error;
  wire [5:0] received;
  wire [38:0] read0, read1;
  wire reads_place, reads_end;
  wire [1:0] orphans_kept;
  wire clear = clears & halt & !read_asks & write_idle;
  wire word_ready, read_data_valid, arvalid, rready, awvalid, wvalid, wlast, stray;
  wire [31:0] araddr, awaddr;
  wire [7:0] arlen, awlen, wstrb, sent, length0, length1;
  wire [2:0] arsize, awsize;
  wire [1:0] arburst, awburst, reads_kept, lengths_kept, writes_kept;
  wire [63:0] wdata;
  wire lengths_place, lengths_end, read_busy, read_last, write_busy, write_last;
  wire reads_room, reads_some, writes_room, writes_some, lengths_room, lengths_some;
  wire [28:0] read_word, write_word;
  wire [15:0] read_left, write_left;
  dut master(.clk(clk), .rst(first), .halt(halt), .clear(clear), .read_asks(read_asks), .write_idle(write_idle),
    .\reader.ends (read_ends), .\reader.received (received), .read_error(read_error),
    .\reader.pending.storage[0] (read0), .\reader.pending.storage[1] (read1),
    .\reader.pending.r_port__addr (reads_place), .\reader.pending.w_port__addr (reads_end),
    .\reader.orphans (orphans_kept), .\reader.has_orphans (has_orphans), .read__payload(read), .read__valid(read_valid), .write__payload(write),
    .write__valid(write_valid), .read_data__ready(read_ready), .read_data__valid(read_data_valid),
    .write_data__payload(word), .write_data__valid(word_valid), .write_data__ready(word_ready), .stray(stray),
    .m_axi__arready(arready), .m_axi__arvalid(arvalid), .m_axi__araddr(araddr), .m_axi__arlen(arlen),
    .m_axi__arsize(arsize), .m_axi__arburst(arburst), .m_axi__rid(1'b0), .m_axi__rdata(rdata), .m_axi__rresp(rresp),
    .m_axi__rlast(rlast), .m_axi__rvalid(rvalid), .m_axi__rready(rready), .m_axi__awready(awready),
    .m_axi__awvalid(awvalid), .m_axi__awaddr(awaddr), .m_axi__awlen(awlen), .m_axi__awsize(awsize),
    .m_axi__awburst(awburst), .m_axi__wready(wready), .m_axi__wdata(wdata), .m_axi__wstrb(wstrb),
    .m_axi__wlast(wlast), .m_axi__wvalid(wvalid), .m_axi__bid(1'b0), .m_axi__bresp(bresp), .m_axi__bvalid(bvalid),
    .\reader.pending.level (reads_kept), .\writer.pending.level (writes_kept), .\writer.lengths.level (lengths_kept),
    .\writer.lengths.storage[0] (length0), .\writer.lengths.storage[1] (length1), .\writer.sent (sent),
    .\writer.lengths.r_port__addr (lengths_place), .\writer.lengths.w_port__addr (lengths_end),
    .\reader.pending.has_room (reads_room), .\reader.pending.has_entry (reads_some),
    .\writer.pending.has_room (writes_room), .\writer.pending.has_entry (writes_some),
    .\writer.lengths.has_room (lengths_room), .\writer.lengths.has_entry (lengths_some),
    .\reader.splitter.word (read_word), .\reader.splitter.left (read_left), .\reader.splitter.last (read_last),
    .\reader.splitter.busy (read_busy), .\writer.splitter.word (write_word), .\writer.splitter.left (write_left),
    .\writer.splitter.last (write_last), .\writer.splitter.busy (write_busy));

  // The store unit offers a word until it is taken.
  reg word_waits = 0;
  reg [71:0] word_before;
  always @(posedge clk) begin
    word_waits <= word_valid & !word_ready & !first;
    word_before <= word;
  end
  reg halting = 0, aw_free_before = 0;
  always @(posedge clk) begin
    halting <= halt & !first;
    aw_free_before <= !awvalid | awready;
  end
  always @* if (word_waits) assume (word_valid & word == word_before);

  // Bursts of reads asked for and not wholly received. One of them is followed, behind `before` others: it ends with
  // RLAST or its last word, and where these are not the same, the fault is told, unless the word is dropped.
  reg [1:0] reads = 0, orphans = 0;
  reg chosen = 0, done = 0, amiss = 0;
  reg [1:0] before;
  reg [7:0] asked, word_of = 0;
  wire choose = arvalid & arready & mark_read & !chosen;
  wire its_word = chosen & !done & before == 0 & rvalid & rready;
  always @(posedge clk) if (!first) begin
    if (choose) begin
      chosen <= 1;
      before <= reads - read_ends;
      asked <= arlen;
    end else if (chosen & !done & read_ends) begin
      done <= before == 0;
      before <= before - 1;
    end
    if (its_word) word_of <= word_of + 1;
  end
  always @(posedge clk) amiss <= !first & !clear & (amiss | its_word & read_data_valid & read_ready & (rlast != (word_of == asked)));
  // Bursts of writes since they stood at AW: `open` without their last word, `writes` without their response.
  reg aw_free = 1;
  reg [1:0] open = 0, writes = 0;
  wire begins = awvalid & aw_free;
  wire [1:0] open_now = open + begins, writes_now = writes + begins;
  wire ends = wvalid & wready & wlast, answered = bvalid & writes_now != 0;
  always @* if (answered) assume (writes_now > open_now);
  // One of them is followed: `ahead` others end before it.
  reg marked = 0, gone = 0;
  reg [1:0] ahead;
  reg [7:0] length, beat = 0;
  wire on = marked | (begins & mark);
  wire [1:0] ahead_now = marked ? ahead : open;
  wire [7:0] length_now = marked ? length : awlen;
  always @(posedge clk) if (!first) begin
    reads <= reads + (arvalid & arready) - read_ends;
    orphans <= clear ? reads - read_ends : orphans - (read_ends & orphans != 0);
    aw_free <= !awvalid | awready;
    open <= open_now - ends;
    writes <= writes_now - answered;
    marked <= on;
    ahead <= ahead_now - ends;
    length <= length_now;
    gone <= gone | (on & ends & ahead_now == 0);
    if (wvalid & wready) beat <= wlast ? 0 : beat + 1;
  end

  // What waits does not change.
  reg ar_waits = 0, aw_waits = 0, w_waits = 0, strayed = 0;
  reg [39:0] ar_before, aw_before;
  reg [72:0] w_before;
  always @(posedge clk) begin
    ar_waits <= arvalid & !arready & !first;
    aw_waits <= awvalid & !awready & !first;
    w_waits <= wvalid & !wready & !first;
    strayed <= (stray | (rvalid & reads == 0) | (bvalid & writes_now == 0)) & !first & !clear;
    ar_before <= {araddr, arlen};
    aw_before <= {awaddr, awlen};
    w_before <= {wdata, wstrb, wlast};
  end

  always @* if (!first) begin
    if (ar_waits) assert (arvalid & ar_before == {araddr, arlen});
    if (aw_waits) assert (awvalid & aw_before == {awaddr, awlen});
    if (w_waits) assert (wvalid & w_before == {wdata, wstrb, wlast});
    if (arvalid) assert ({1'b0, araddr[11:0]} + {2'b0, arlen, 3'b0} + 8 <= 4096 & araddr[2:0] == 0);
    if (awvalid) assert ({1'b0, awaddr[11:0]} + {2'b0, awlen, 3'b0} + 8 <= 4096 & awaddr[2:0] == 0);
    if (arvalid) assert (arsize == 3 & arburst == 1 & arlen < 64);
    if (awvalid) assert (awsize == 3 & awburst == 1 & awlen < 64);
    assert (reads <= 2 & writes_now <= 2);                       // as many outstanding as there may be
    if (read_data_valid) assert (reads > orphans & !halt);        // words for bursts since the last halt alone
    if (reads <= orphans | halt) assert (rready);                 // others are taken, and told where no burst is theirs
    if (halting & aw_free_before & !first) assert (!begins);      // nothing begins
    if (strayed) assert (stray);
    if (wvalid) assert (open_now != 0);                           // no word before its address
    if (on & !gone & ahead_now == 0 & wvalid) assert (wlast == (beat == length_now) & beat <= length_now);
    if (its_word) assert (read_ends == (rlast | word_of == asked) & word_of <= asked);
    if (amiss) assert (read_error);
    // Invariants.
    if (chosen & !done) assert (before < reads & asked == ((reads_place ^ before[0]) ? read1[38:33] : read0[38:33]));
    if (chosen & !done) assert (before == 0 ? word_of == received & word_of <= asked : word_of == 0);
    if (!chosen) assert (word_of == 0 & !done);
    if (reads == 0) assert (received == 0);
    else assert (received <= (reads_place ? read1[38:33] : read0[38:33]));
    assert (reads_end == reads_place + reads_kept[0]);
    assert (reads_kept == reads & writes_kept == writes_now & lengths_kept == open_now & open_now <= writes_now);
    assert (reads_room == (reads_kept != 2) & reads_some == (reads_kept != 0));
    assert (writes_room == (writes_kept != 2) & writes_some == (writes_kept != 0));
    assert (lengths_room == (lengths_kept != 2) & lengths_some == (lengths_kept != 0));
    assert (beat == sent & lengths_end == lengths_place + lengths_kept[0]);
    if (on & !gone) assert (ahead_now < open_now & length_now == ((lengths_place ^ ahead_now[0]) ? length1 : length0));
    assert (open <= 2 & writes <= 2);
    assert (orphans == orphans_kept & has_orphans == (orphans != 0) & orphans <= reads);
    if (read_busy) assert (read_last == (read_left <= {10'b0, ~read_word[5:0]}));
    if (write_busy) assert (write_last == (write_left <= {10'b0, ~write_word[5:0]}));
    if (open == 0) assert (beat == 0);
    if (open_now != 0) assert (beat <= (lengths_place ? length1 : length0));
    cover (gone & length == 3);
    cover (reads == 2 & arvalid == 0 & read_data_valid);
    cover (stray);
    cover (amiss & done & asked == 2);
    cover (orphans == 1 & reads == 2 & rvalid);
  end
endmodule
