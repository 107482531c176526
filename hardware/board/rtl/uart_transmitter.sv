// UART transmitter: 8 data bits, no parity, one stop bit.
module uart_transmitter (
  input  logic        clk,
  input  logic        rst_n,
  input  logic [15:0] cycles_per_bit,

  input  logic        valid,
  output logic        ready,
  input  logic [7:0]  data,
  output logic        tx
);
  logic [15:0] wait_cycles;
  logic [3:0]  bits_left;               // of start bit, data and stop bit
  logic [8:0]  shift;

  assign ready = bits_left == 0;

  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      tx          <= 1'b1;
      bits_left   <= 4'd0;
      wait_cycles <= 16'd0;
      shift       <= 9'd0;
    end else if (ready) begin
      if (valid) begin
        tx          <= 1'b0;
        bits_left   <= 4'd10;
        wait_cycles <= cycles_per_bit - 1'b1;
        shift       <= {1'b1, data};
      end
    end else if (wait_cycles != 0) begin
      wait_cycles <= wait_cycles - 1'b1;
    end else begin
      tx          <= bits_left == 1 ? 1'b1 : shift[0];
      bits_left   <= bits_left - 1'b1;
      wait_cycles <= cycles_per_bit - 1'b1;
      shift       <= {1'b1, shift[8:1]};
    end
endmodule
