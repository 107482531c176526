// No burst begins or ends outside the windows that allow it, whatever is requested and however memory answers, and no
// request leaves the check that has refused one before.
module top(input clk, input [47:0] read, input read_valid, input [47:0] write, input write_valid, input read_ready,
           input [71:0] word, input word_valid, input halt, input arready, input [63:0] rdata, input [1:0] rresp,
           input rlast, input rvalid, input awready, input wready, input [1:0] bresp, input bvalid);
  reg first = 1;
  always @(posedge clk) first <= 0;

  (* anyconst *) reg [65:0] window0;   // writable, readable, limit, base: set by the host and steady
  (* anyconst *) reg [65:0] window1;
  wire arvalid, awvalid;
  wire [31:0] araddr, awaddr;
  wire [7:0] arlen, awlen;
  wire [28:0] read_word, write_word;
  wire [15:0] read_left, write_left;
  wire read_busy, write_busy, read_last, write_last, read_sound, write_sound;
  wire [47:0] read_held, write_held;
  wire [32:0] read_end, write_end;
  wire read_taken, write_taken, read_waits, write_waits, read_passes, write_passes, read_fault, write_fault;
  dut master(.clk(clk), .rst(first), .windows__0(window0), .windows__1(window1), .halt(halt), .clear(1'b0),
    .read__payload(read), .read__valid(read_valid), .read__ready(read_taken),
    .write__payload(write), .write__valid(write_valid), .write__ready(write_taken),
    .read_data__ready(read_ready), .write_data__payload(word), .write_data__valid(word_valid),
    .m_axi__arready(arready), .m_axi__arvalid(arvalid), .m_axi__araddr(araddr), .m_axi__arlen(arlen),
    .m_axi__rid(1'b0), .m_axi__rdata(rdata), .m_axi__rresp(rresp), .m_axi__rlast(rlast), .m_axi__rvalid(rvalid),
    .m_axi__awready(awready), .m_axi__awvalid(awvalid), .m_axi__awaddr(awaddr), .m_axi__awlen(awlen),
    .m_axi__wready(wready), .m_axi__bid(1'b0), .m_axi__bresp(bresp), .m_axi__bvalid(bvalid),
    .\axi.reader.splitter.word (read_word), .\axi.reader.splitter.left (read_left),
    .\axi.reader.splitter.busy (read_busy), .\axi.reader.splitter.last (read_last),
    .\axi.writer.splitter.word (write_word), .\axi.writer.splitter.left (write_left),
    .\axi.writer.splitter.busy (write_busy), .\axi.writer.splitter.last (write_last),
    .\read_check.held (read_waits), .\read_check.o__valid (read_passes), .\read_check.fault (read_fault),
    .\write_check.held (write_waits), .\write_check.o__valid (write_passes), .\write_check.fault (write_fault),
    .\read_check.request (read_held), .\read_check.end (read_end), .\read_check.sound (read_sound),
    .\write_check.request (write_held), .\write_check.end (write_end), .\write_check.sound (write_sound));

  function one(input [65:0] window, input permitted, input [31:0] from, input [32:0] to);
    one = permitted & from >= window[31:0] & to <= {1'b0, window[63:32]} & {1'b0, from} < to;
  endfunction
  function inside(input is_write, input [31:0] from, input [32:0] to);
    inside = one(window0, is_write ? window0[65] : window0[64], from, to)
           | one(window1, is_write ? window1[65] : window1[64], from, to);
  endfunction
  function [32:0] after(input [31:0] from, input [15:0] left);   // the end of `left` + 1 words
    after = {1'b0, from} + {14'b0, left, 3'b0} + 8;
  endfunction
  function sound(input [47:0] request, input [32:0] to);
    sound = to == {1'b0, request[31:0]} + {14'b0, request[47:32], 3'b0} & request[2:0] == 0 & request[47:32] != 0;
  endfunction

  function allowed(input is_write, input [47:0] request);
    allowed = request[2:0] == 0 & request[47:32] != 0
            & inside(is_write, request[31:0], {1'b0, request[31:0]} + {14'b0, request[47:32], 3'b0});
  endfunction

  reg read_refused = 0, write_refused = 0;   // a request was taken that no window allows
  always @(posedge clk) begin
    read_refused <= !first & (read_refused | read_valid & read_taken & !allowed(0, read));
    write_refused <= !first & (write_refused | write_valid & write_taken & !allowed(1, write));
  end

  always @* if (!first) begin
    if (read_refused) assert (!read_passes);
    if (write_refused) assert (!write_passes);
    // Invariants: what was refused is still held, and no window fits it, or the fault stands.
    if (read_refused) assert (read_fault
                              | read_waits & !(read_sound & inside(0, read_held[31:0], read_end)));
    if (write_refused) assert (write_fault
                               | write_waits & !(write_sound & inside(1, write_held[31:0], write_end)));
    if (read_fault) assert (!read_waits);
    if (write_fault) assert (!write_waits);
    if (arvalid) assert (inside(0, araddr, after(araddr, arlen)));
    if (awvalid) assert (inside(1, awaddr, after(awaddr, awlen)));
    // Invariants: what is still to be cut lies inside too, and the end that is compared is the request's.
    if (read_busy) assert (inside(0, {read_word, 3'b0}, after({read_word, 3'b0}, read_left)));
    if (write_busy) assert (inside(1, {write_word, 3'b0}, after({write_word, 3'b0}, write_left)));
    if (read_busy) assert (read_last == (read_left <= {10'b0, ~read_word[5:0]}));
    if (write_busy) assert (write_last == (write_left <= {10'b0, ~write_word[5:0]}));
    if (read_sound) assert (sound(read_held, read_end));
    if (write_sound) assert (sound(write_held, write_end));
    cover (arvalid & arlen == 63 & araddr != 0);
    cover (awvalid & awlen == 2);
  end
endmodule
