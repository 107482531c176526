// Each access has one response; a command that was answered OKAY leaves once, in order, with the operands written last.
module top(input clk, input [11:0] awaddr, input awvalid, input [31:0] wdata, input [3:0] wstrb, input wvalid,
           input bready, input [11:0] araddr, input arvalid, input rready, input wanted, input idle, input quiet, input fault,
           input [3:0] code, input [31:0] fault_address, input mark);
  reg first = 1;
  always @(posedge clk) first <= 0;

  wire awready, wready, arready, bvalid, rvalid, valid;
  wire [1:0] bresp, rresp;
  wire [31:0] rdata;
  wire [73:0] head;
  wire done, has_address, has_data, enters_queue, stop, abort, stale, acted, sends, refused, next_has_address, next_has_data;
  wire [11:0] write_address, next_address;
  wire [31:0] next_data;
  wire [3:0] next_strobes;
  wire [31:0] write_data, rs1, rs2;
  wire [3:0] write_strobes;
  wire [2:0] level;
  wire [1:0] write_place, read_place;
  wire [73:0] word0, word1, word2, word3;
  dut port(.clk(clk), .rst(first),
           .s_axi__awaddr(awaddr), .s_axi__awprot(3'b0), .s_axi__awvalid(awvalid), .s_axi__awready(awready),
           .s_axi__wdata(wdata), .s_axi__wstrb(wstrb), .s_axi__wvalid(wvalid), .s_axi__wready(wready),
           .s_axi__bresp(bresp), .s_axi__bvalid(bvalid), .s_axi__bready(bready),
           .s_axi__araddr(araddr), .s_axi__arprot(3'b0), .s_axi__arvalid(arvalid), .s_axi__arready(arready),
           .s_axi__rdata(rdata), .s_axi__rresp(rresp), .s_axi__rvalid(rvalid), .s_axi__rready(rready),
           .commands__payload(head), .commands__valid(valid), .commands__ready(wanted),
           .stop(stop), .abort(abort), .stale(stale), .acted(acted), .sends(sends), .refused(refused), .following_has_address(next_has_address),
           .following_has_data(next_has_data), .following_write_address(next_address),
           .following_write_data(next_data), .following_write_strobes(next_strobes),
           .idle(idle), .quiet(quiet), .fault(fault), .fault_code(code), .fault_address(fault_address),
           .done(done), .has_address(has_address), .has_data(has_data), .write_address(write_address),
           .write_data(write_data), .write_strobes(write_strobes), .rs1(rs1), .rs2(rs2),
           .\queue.w_en (enters_queue), .\queue.level (level), .\queue.w_port__addr (write_place),
           .\queue.r_port__addr (read_place), .\queue.storage[0] (word0), .\queue.storage[1] (word1),
           .\queue.storage[2] (word2), .\queue.storage[3] (word3));

  // What the bus has said of the write under way, the operands that follow from it, and responses that are due.
  wire takes_address = awvalid & awready & !first, takes_data = wvalid & wready & !first;
  wire answers = bvalid & bready & !first;
  reg [11:0] address, later_address;
  reg [31:0] data, later_data, first_operand = 0, second_operand = 0;
  reg [3:0] strobes, later_strobes;
  reg [1:0] addresses = 0, words = 0;               // taken and not answered
  wire [1:0] open_addresses = addresses - bvalid, open_words = words - bvalid;  // and not carried out
  reg reads = 0;
  integer lane;
  always @(posedge clk) if (!first) begin
    if (takes_address & open_addresses == 0) address <= awaddr;
    if (takes_address & open_addresses != 0) later_address <= awaddr;
    if (takes_data & open_words == 0) begin data <= wdata; strobes <= wstrb; end
    if (takes_data & open_words != 0) begin later_data <= wdata; later_strobes <= wstrb; end
    if (done) begin address <= later_address; data <= later_data; strobes <= later_strobes; end
    addresses <= addresses + takes_address - answers;
    words <= words + takes_data - answers;
    reads <= reads + (arvalid & arready) - (rvalid & rready);
    for (lane = 0; lane < 4; lane = lane + 1) if (done & strobes[lane]) begin
      if (address[11:2] == 0) first_operand[8*lane +: 8] <= data[8*lane +: 8];
      if (address[11:2] == 1) second_operand[8*lane +: 8] <= data[8*lane +: 8];
    end
    if (abort) begin first_operand <= 0; second_operand <= 0; end
  end

  wire ends_all = data[6:0] == 7'h0b & data[14:12] == 6 & data[31:25] == 7'h70 & first_operand[0];  // an abort, if it is a command

  // What was so a cycle ago.
  reg was_done = 0, was_entering, was_operand, was_control, was_forgotten, was_abort = 0, stood = 0, read_stood = 0, was_refused = 0, was_read = 0;
  reg [1:0] response, read_response;
  reg [31:0] value;
  always @(posedge clk) begin
    was_done <= done & !first;
    was_entering <= enters_queue;
    was_operand <= address[11:2] <= 1;
    was_control <= address[11:2] == 6 & strobes == 15 & !data[2];  // a machine without erasure
    was_forgotten <= address[11:2] == 2 & strobes == 15 & (stale | abort | ends_all);
    was_abort <= abort & !first;
    was_refused <= refused & !first;
    was_read <= arvalid & arready & araddr[11:2] == 3 & !first;
    stood <= bvalid & !bready & !first;
    read_stood <= rvalid & !rready & !first;
    response <= bresp;
    read_response <= rresp;
    value <= rdata;
  end

  wire controls = has_address & has_data & address[11:2] == 6 & strobes == 15 & !data[2];
  wire next_controls = next_has_address & next_has_data & next_address[11:2] == 6 & next_strobes == 15 & !next_data[2];

  // A command that enters at an arbitrary moment is followed: `ahead` others leave before it.
  wire enters = enters_queue & !first, leaves = valid & wanted & !first;
  reg [2:0] held = 0, ahead;
  reg marked = 0, gone = 0;
  reg [73:0] followed;
  always @(posedge clk) if (!first) begin
    held <= abort ? 0 : held + enters - leaves;
    if (enters & mark & !marked) begin
      marked <= 1;
      followed <= {second_operand, first_operand, data[28:25], data[31:29], data[14:12]};
      ahead <= held - leaves;
    end else if (marked & !gone & leaves) begin
      gone <= ahead == 0;
      ahead <= ahead - 1;
    end
    if (abort & marked) gone <= 1;                                  // forgotten
  end

  wire [1:0] place = read_place + ahead[1:0], next_place = read_place + level[1:0];
  wire [73:0] kept = place == 0 ? word0 : place == 1 ? word1 : place == 2 ? word2 : word3;

  always @* if (!first) begin
    if (bvalid) assert (addresses != 0 & words != 0);               // no response before address and data
    if (stood) assert (bvalid & bresp == response);                 // and it stands
    assert (rvalid == reads);
    if (read_stood) assert (rvalid & rresp == read_response & rdata == value);
    if (enters) assert (done & address[11:2] == 2 & strobes == 15 & held < 4);
    if (was_done) assert (bvalid & (bresp == 0) == (was_entering | was_operand | was_control | was_forgotten));
    if (enters) assert (!stale & !abort);                           // nor one that an abort has overtaken
    // Control is taken in the cycle in which all of it is there, once, also behind a command that waits; so is an abort.
    if (next_controls & !acted) assert (stop == next_data[0] & abort == next_data[1]);
    if (controls & !acted) assert (stop == data[0] & abort == data[1]);
    if (acted) assert (!stop & !abort);
    if (stop | abort) assert (controls | next_controls | (has_address & has_data & address[11:2] == 2 & ends_all));
    if (was_abort) assert (!valid);
    // `refused` is set by each write that is answered with SLVERR, stands, is read, and an abort clears it.
    assert (refused == (!was_abort & (was_refused | (was_done & bresp != 0))));
    if (was_read) assert (rdata[4] == was_refused);
    if (valid) assert (held != 0);                                  // nothing is made up or doubled
    if (marked & !gone) assert (ahead < held);                      // nothing is lost
    if (marked & !gone & valid & ahead == 0) assert (head == followed); // nothing is changed or reordered
    // Invariants.
    assert (addresses == has_address + next_has_address + bvalid & words == has_data + next_has_data + bvalid);
    if (has_address) assert (write_address == address);
    if (has_data) assert (write_data == data & write_strobes == strobes);
    if (next_has_address) assert (has_address & has_data & next_address == later_address);
    if (next_has_data) assert (has_address & has_data & next_data == later_data & next_strobes == later_strobes);
    if (next_has_address | next_has_data | stale) assert (has_address & has_data & address[11:2] == 2 & strobes == 15);
    if (next_has_address | next_has_data | stale) assert (sends);
    if (acted) assert (controls | next_controls | stale);
    assert (rs1 == first_operand & rs2 == second_operand);
    assert (held == level & level <= 4 & valid == (level != 0) & next_place == write_place);
    if (marked & !gone) assert (kept == followed);
    cover (marked & !gone & ahead == 1);
    cover (was_refused & was_abort);
    cover (gone & bvalid & bresp == 2);
    cover (next_controls & abort & held == 4);
  end
endmodule
