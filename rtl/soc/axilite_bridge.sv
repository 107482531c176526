// From a core's data port (req, gnt, rvalid) to an AXI4-Lite master: one access at a time, its response is waited for.
module axilite_bridge #(
  parameter int ADDRESS_BITS = 12
) (
  input  logic                    clk,
  input  logic                    rst_n,

  input  logic                    req,
  output logic                    gnt,
  input  logic [ADDRESS_BITS-1:0] addr,
  input  logic                    we,
  input  logic [3:0]              be,
  input  logic [31:0]             wdata,
  output logic                    rvalid,
  output logic [31:0]             rdata,
  output logic                    err,
  output logic                    busy,

  output logic [ADDRESS_BITS-1:0] m_axi_awaddr,
  output logic [2:0]              m_axi_awprot,
  output logic                    m_axi_awvalid,
  input  logic                    m_axi_awready,
  output logic [31:0]             m_axi_wdata,
  output logic [3:0]              m_axi_wstrb,
  output logic                    m_axi_wvalid,
  input  logic                    m_axi_wready,
  input  logic [1:0]              m_axi_bresp,
  input  logic                    m_axi_bvalid,
  output logic                    m_axi_bready,
  output logic [ADDRESS_BITS-1:0] m_axi_araddr,
  output logic [2:0]              m_axi_arprot,
  output logic                    m_axi_arvalid,
  input  logic                    m_axi_arready,
  input  logic [31:0]             m_axi_rdata,
  input  logic [1:0]              m_axi_rresp,
  input  logic                    m_axi_rvalid,
  output logic                    m_axi_rready
);
  logic [ADDRESS_BITS-1:0] address;

  assign gnt          = !busy;
  assign m_axi_awaddr = address;
  assign m_axi_araddr = address;
  assign m_axi_awprot = 3'b000;
  assign m_axi_arprot = 3'b000;
  assign m_axi_bready = 1'b1;
  assign m_axi_rready = 1'b1;
  assign rvalid       = m_axi_bvalid || m_axi_rvalid;
  assign rdata        = m_axi_rdata;
  assign err          = m_axi_bvalid ? m_axi_bresp != 2'b00 : m_axi_rresp != 2'b00;

  always_ff @(posedge clk or negedge rst_n) begin
    if (!rst_n) begin
      {busy, m_axi_awvalid, m_axi_wvalid, m_axi_arvalid} <= '0;
      {address, m_axi_wdata, m_axi_wstrb}                <= '0;
    end else if (req && gnt) begin
      {busy, m_axi_awvalid, m_axi_wvalid, m_axi_arvalid} <= {1'b1, we, we, !we};
      {address, m_axi_wdata, m_axi_wstrb}                <= {addr, wdata, be};
    end else begin
      if (m_axi_awready) m_axi_awvalid <= 1'b0;
      if (m_axi_wready)  m_axi_wvalid  <= 1'b0;
      if (m_axi_arready) m_axi_arvalid <= 1'b0;
      if (rvalid)        busy          <= 1'b0;
    end
  end
endmodule
