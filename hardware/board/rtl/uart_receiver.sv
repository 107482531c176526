// UART receiver: 8 data bits, no parity, one stop bit; a byte whose stop bit is not one is dropped.
module uart_receiver (
  input  logic        clk,
  input  logic        rst_n,
  input  logic [15:0] cycles_per_bit,   // at least 4

  input  logic        rx,
  output logic        valid,            // for one cycle
  output logic [7:0]  data
);
  // The line comes from another clock.
  logic [1:0]  line;
  logic [15:0] wait_cycles;
  logic [3:0]  bits_left;               // of start bit, data and stop bit; 0: idle
  logic        sample;

  assign sample = bits_left != 0 && wait_cycles == 0;

  always_ff @(posedge clk or negedge rst_n)
    if (!rst_n) begin
      line      <= 2'b11;
      bits_left <= 4'd0;
      valid     <= 1'b0;
    end else begin
      line  <= {line[0], rx};
      valid <= sample && bits_left == 1 && line[1];
      if (bits_left == 0) begin
        if (!line[1]) bits_left <= 4'd10;
      end else if (sample) begin
        // A start bit that is over in its middle was noise.
        bits_left <= (bits_left == 10 && line[1]) ? 4'd0 : bits_left - 1'b1;
      end
    end

  always_ff @(posedge clk) begin
    // Bits are looked at in their middle.
    if (bits_left == 0) wait_cycles <= {1'b0, cycles_per_bit[15:1]} - 1'b1;
    else if (sample)    wait_cycles <= cycles_per_bit - 1'b1;
    else                wait_cycles <= wait_cycles - 1'b1;
    if (sample && bits_left != 1) data <= {line[1], data[7:1]};
  end
endmodule
