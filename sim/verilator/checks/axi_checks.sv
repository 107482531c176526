// AXI4's rules for the coprocessor's bus, in simulation as in the proof (hardware/proofs/bus_master.sv): what waits does
// not change, bursts stay within 4 KiB and a window, the last word of each is marked, and no more than 16 are outstanding.
module axi_checks #(
  parameter int BUS_BYTES = 8
) (
  input logic                   clk,
  input logic                   rst_n,
  input logic [31:0]            m_axi_araddr,
  input logic [7:0]             m_axi_arlen,
  input logic [1:0]             m_axi_arburst,
  input logic [2:0]             m_axi_arsize,
  input logic                   m_axi_arvalid,
  input logic                   m_axi_arready,
  input logic                   m_axi_rlast,
  input logic                   m_axi_rvalid,
  input logic                   m_axi_rready,
  input logic [31:0]            m_axi_awaddr,
  input logic [7:0]             m_axi_awlen,
  input logic [1:0]             m_axi_awburst,
  input logic [2:0]             m_axi_awsize,
  input logic                   m_axi_awvalid,
  input logic                   m_axi_awready,
  input logic [8*BUS_BYTES-1:0] m_axi_wdata,
  input logic [BUS_BYTES-1:0]   m_axi_wstrb,
  input logic                   m_axi_wlast,
  input logic                   m_axi_wvalid,
  input logic                   m_axi_wready,
  input logic                   m_axi_bvalid,
  input logic                   m_axi_bready,
  input logic [3:0][31:0]       window_base,
  input logic [3:0][31:0]       window_limit,
  input logic [3:0]             window_readable,
  input logic [3:0]             window_writable
);
  localparam int OUTSTANDING = 16;

  wire ar = m_axi_arvalid && m_axi_arready, aw = m_axi_awvalid && m_axi_awready;
  wire w = m_axi_wvalid && m_axi_wready, b = m_axi_bvalid && m_axi_bready;
  wire last_read = m_axi_rvalid && m_axi_rready && m_axi_rlast;

  // Lengths of the bursts whose words have not all been written; an address may be taken after its first words.
  int unsigned reads, writes, beat;
  logic [7:0]  lengths [$];

  function automatic logic [32:0] end_of(logic [31:0] address, logic [7:0] length);
    return {1'b0, address} + BUS_BYTES * (33'(length) + 1);
  endfunction

  function automatic logic permitted(logic [31:0] address, logic [7:0] length, logic [3:0] permits);
    for (int i = 0; i < 4; i++)
      if (permits[i] && address >= window_base[i] && end_of(address, length) <= {1'b0, window_limit[i]}) return 1'b1;
    return 1'b0;
  endfunction

  function automatic logic is_burst(logic [31:0] address, logic [7:0] length, logic [1:0] burst, logic [2:0] size);
    return burst == 2'b01 && size == 3'($clog2(BUS_BYTES)) && address % BUS_BYTES == 0 && length < 64
      && address[31:12] == 20'((end_of(address, length) - 1) >> 12);
  endfunction

  logic aw_free;   // the address offered now was not offered before
  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      reads   <= 0;
      writes  <= 0;
      beat    <= 0;
      aw_free <= 1'b1;
      lengths.delete();
    end else begin
      if (m_axi_awvalid && aw_free) lengths.push_back(m_axi_awlen);
      if (w) begin
        assert (lengths.size() > 0) else $error("a word was written before its address was offered");
        assert (lengths.size() == 0 || m_axi_wlast == (beat == 32'(lengths[0]))) else $error("WLAST is not at the end");
        if (m_axi_wlast) void'(lengths.pop_front());
        beat <= m_axi_wlast ? 0 : beat + 1;
      end
      aw_free <= !m_axi_awvalid || m_axi_awready;
      reads   <= reads + 32'(ar) - 32'(last_read);
      writes  <= writes + 32'(aw) - 32'(b);
    end

  default clocking @(posedge clk); endclocking
  default disable iff (!rst_n);

  a_read_address_waits: assert property (m_axi_arvalid && !m_axi_arready |=>
    m_axi_arvalid && $stable({m_axi_araddr, m_axi_arlen, m_axi_arsize, m_axi_arburst}));
  a_write_address_waits: assert property (m_axi_awvalid && !m_axi_awready |=>
    m_axi_awvalid && $stable({m_axi_awaddr, m_axi_awlen, m_axi_awsize, m_axi_awburst}));
  a_word_waits: assert property (m_axi_wvalid && !m_axi_wready |=>
    m_axi_wvalid && $stable({m_axi_wdata, m_axi_wstrb, m_axi_wlast}));
  a_read_burst: assert property (m_axi_arvalid |-> is_burst(m_axi_araddr, m_axi_arlen, m_axi_arburst, m_axi_arsize));
  a_write_burst: assert property (m_axi_awvalid |-> is_burst(m_axi_awaddr, m_axi_awlen, m_axi_awburst, m_axi_awsize));
  a_reads_within: assert property (m_axi_arvalid |-> permitted(m_axi_araddr, m_axi_arlen, window_readable));
  a_writes_within: assert property (m_axi_awvalid |-> permitted(m_axi_awaddr, m_axi_awlen, window_writable));
  a_reads_outstanding: assert property (reads <= OUTSTANDING);
  a_writes_outstanding: assert property (writes <= OUTSTANDING);
  a_read_was_asked_for: assert property (m_axi_rvalid |-> reads > 0);
  a_write_was_asked_for: assert property (m_axi_bvalid |-> writes > 0);
endmodule

bind `SOC axi_checks #(.BUS_BYTES(BUS_BYTES)) axi_checks (.*);
