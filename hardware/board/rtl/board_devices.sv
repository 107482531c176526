// What the core reaches beside memory: UART, lamps, the coprocessor's windows and its fault. Words of 32 bits only.
//
//   0x00  UART data      write: send the byte; read: the byte received, which is then taken
//   0x04  UART status    bit 0: a byte has been received; bit 1: the transmitter takes one
//   0x08  UART divider   clock cycles per bit, 16 bits
//   0x0c  lamps          bits 6..0
//   0x10  fault          bit 4: the coprocessor has stopped; bits 3..0: why (isa/counters.py)
//   0x14  fault address
//   0x40  windows, 16 bytes each: base, limit, bit 0 readable and bit 1 writable
module board_devices #(
  parameter int CYCLES_PER_BIT = 217    // of the UART, after reset
) (
  input  logic             clk,
  input  logic             rst_n,

  // As board_main_memory: data in the cycle after
  input  logic             core_use,
  input  logic             core_write,
  input  logic [7:0]       core_address,
  input  logic [31:0]      core_wdata,
  output logic [31:0]      core_data,

  input  logic             uart_rx,
  output logic             uart_tx,
  output logic [6:0]       lamps,

  output logic [3:0][31:0] window_base,
  output logic [3:0][31:0] window_limit,
  output logic [3:0]       window_readable,
  output logic [3:0]       window_writable,

  input  logic             fault,
  input  logic [3:0]       fault_code,
  input  logic [31:0]      fault_address
);
  logic        write, read_byte, received, has_byte, sent;
  logic [7:0]  received_byte, byte_q;
  logic [15:0] divider;

  assign write     = core_use && core_write;
  assign read_byte = core_use && !core_write && core_address == 8'h00;

  uart_receiver receiver (
    .clk(clk), .rst_n(rst_n), .cycles_per_bit(divider), .rx(uart_rx), .valid(received), .data(received_byte)
  );

  uart_transmitter transmitter (
    .clk(clk), .rst_n(rst_n), .cycles_per_bit(divider),
    .valid(write && core_address == 8'h00), .ready(sent), .data(core_wdata[7:0]), .tx(uart_tx)
  );

  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      has_byte        <= 1'b0;
      divider         <= 16'(CYCLES_PER_BIT);
      lamps           <= 7'd0;
      window_base     <= '0;
      window_limit    <= '0;
      window_readable <= 4'd0;
      window_writable <= 4'd0;
    end else begin
      if (received)       has_byte <= 1'b1;
      else if (read_byte) has_byte <= 1'b0;
      if (write && core_address == 8'h08) divider <= core_wdata[15:0];
      if (write && core_address == 8'h0c) lamps   <= core_wdata[6:0];
      if (write && core_address[7:6] == 2'b01)
        case (core_address[3:2])
          2'd0: window_base[core_address[5:4]]  <= core_wdata;
          2'd1: window_limit[core_address[5:4]] <= core_wdata;
          2'd2: {window_writable[core_address[5:4]], window_readable[core_address[5:4]]} <= core_wdata[1:0];
          default: ;
        endcase
    end

  always_ff @(posedge clk) begin
    if (received) byte_q <= received_byte;
    if (core_use)
      case (core_address)
        8'h00:   core_data <= {24'd0, byte_q};
        8'h04:   core_data <= {30'd0, sent, has_byte};
        8'h08:   core_data <= {16'd0, divider};
        8'h10:   core_data <= {27'd0, fault, fault_code};
        8'h14:   core_data <= fault_address;
        default: core_data <= 32'd0;
      endcase
  end
endmodule
