// The pins of a ULX3S board around the system: 25 MHz oscillator, reset button, lamps, UART through the FTDI chip.
module ulx3s #(
  parameter int BUS_BYTES  = 4,
  parameter int RAM_BYTES  = 32768,
  parameter int MAIN_BYTES = 81920
) (
  input  logic       clk_25mhz,
  input  logic       button_fire1,    // pressed: reset
  output logic       ftdi_rxd,        // to the host
  input  logic       ftdi_txd,        // from the host
  output logic       wifi_gpio0,      // high, or the ESP32 may take the board over
  output logic [7:0] led
);
  assign wifi_gpio0 = 1'b1;

  // In reset for 256 cycles from configuration, or from when the button is released: it bounces.
  logic [1:0] pressed = 2'b00;
  logic [8:0] run     = 9'd0;

  always_ff @(posedge clk_25mhz) begin
    pressed <= {pressed[0], button_fire1};
    if (pressed[1])   run <= 9'd0;
    else if (!run[8]) run <= run + 1'b1;
  end

  board_soc #(.BUS_BYTES(BUS_BYTES), .RAM_BYTES(RAM_BYTES), .MAIN_BYTES(MAIN_BYTES)) soc (
    .clk(clk_25mhz), .rst_n(run[8]), .uart_rx(ftdi_txd), .uart_tx(ftdi_rxd), .lamps(led)
  );
endmodule
