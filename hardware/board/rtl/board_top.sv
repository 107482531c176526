// The pins of a board around the system: oscillator, reset button, UART, LEDs. The record of the board (boards.py) sets
// the parameters.
module board_top #(
  parameter int               BUS_BYTES      = 4,
  parameter int               RAM_BYTES      = 32768,
  parameter int               MAIN_BYTES     = 81920,
  parameter int               CLOCK_DIVIDER  = 1,     // a power of two
  parameter int               CYCLES_PER_BIT = 217,
  parameter bit               BUTTON_PRESSED = 1'b1,  // the pin's level then
  parameter int               OUTPUTS        = 8,
  parameter bit [OUTPUTS-1:0] LIT            = '1,    // each output's level while it is lit
  parameter bit [8*OUTPUTS-1:0] SHOWN        = 64'h80_40_20_10_08_04_02_01  // 8 bits each: it is lit with these lamps
) (
  input  logic               oscillator,
  input  logic               button,     // pressed: reset
  input  logic               uart_rx,    // from the host
  output logic               uart_tx,    // to the host
  output logic [OUTPUTS-1:0] outputs     // LEDs; one that shows no lamp is constant
);
  logic       clk;
  logic [7:0] lamps;

  if (CLOCK_DIVIDER == 1) begin : g_whole
    assign clk = oscillator;
  end else begin : g_divided
    // On a global net, like any clock. Nothing else runs from the oscillator, so there is nothing to cross.
    logic [$clog2(CLOCK_DIVIDER)-1:0] count = '0;
    always_ff @(posedge oscillator) count <= count + 1'b1;
    assign clk = count[$clog2(CLOCK_DIVIDER)-1];
  end

  // In reset for 256 cycles from configuration, or from when the button is released: it bounces.
  logic [1:0] pressed = 2'b00;
  logic [8:0] run     = 9'd0;

  always_ff @(posedge clk) begin
    pressed <= {pressed[0], button == BUTTON_PRESSED};
    if (pressed[1])   run <= 9'd0;
    else if (!run[8]) run <= run + 1'b1;
  end

  board_soc #(
    .BUS_BYTES(BUS_BYTES), .RAM_BYTES(RAM_BYTES), .MAIN_BYTES(MAIN_BYTES), .CYCLES_PER_BIT(CYCLES_PER_BIT)
  ) soc (
    .clk(clk), .rst_n(run[8]), .uart_rx(uart_rx), .uart_tx(uart_tx), .lamps(lamps)
  );

  for (genvar i = 0; i < OUTPUTS; i++) begin : g_outputs
    assign outputs[i] = |(lamps & SHOWN[8*i +: 8]) ? LIT[i] : !LIT[i];
  end
endmodule
