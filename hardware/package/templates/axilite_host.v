// A master on AXI4-Lite: writes both operands and the word of each command, data before or after the address; then polls.
{% if SETTINGS %}
// Before that it reads what the hardware is, which must be as expected, and sets windows and their lock: settings.hex.
{% endif %}
module axilite_host #(
  parameter COMMANDS = 1
) (
  input  wire        clk,
  input  wire        rst,
  output reg  [31:0] index,      // of the command under way
  output wire        done,
  output reg         broken,     // an access was answered with an error, or the last fence told a fault
  output wire [11:0] awaddr,
  output wire [2:0]  awprot,
  output reg         awvalid,
  input  wire        awready,
  output wire [31:0] wdata,
  output wire [3:0]  wstrb,
  output reg         wvalid,
  input  wire        wready,
  input  wire [1:0]  bresp,
  input  wire        bvalid,
  output wire        bready,
  output wire [11:0] araddr,
  output wire [2:0]  arprot,
  output reg         arvalid,
  input  wire        arready,
  input  wire [31:0] rdata,
  input  wire [1:0]  rresp,
  input  wire        rvalid,
  output wire        rready
);
{% for name, offset in REGISTERS.items() %}
  localparam [11:0] {{ name }} = 12'h{{ offset }};
{% endfor %}
  localparam [2:0] WRITE = 3'd0, WAIT = 3'd1, READ = 3'd2, DONE = 3'd3{{ ", CHECK = 3'd4" if SETTINGS }};
{% if SETTINGS %}

  localparam SETTINGS = {{ SETTINGS }};
  reg  [47:0] settings [0:SETTINGS-1];
  initial $readmemh("settings.hex", settings);
  reg  [31:0] set;               // how many of them are done
  wire        setting = set != SETTINGS;
  wire [47:0] access  = settings[set];
{% endif %}

  reg [95:0] commands [0:COMMANDS-1];
  initial $readmemh("commands.hex", commands);

  reg  [2:0]  state;
  reg  [1:0]  place;             // rs1, rs2, the word
  reg         address_due, data_due;
  reg  [15:0] noise;
  wire [95:0] command = commands[index];

  assign done   = state == DONE;
  assign awaddr = {{ "setting ? access[43:32] : " if SETTINGS }}place == 2'd0 ? RS1 : place == 2'd1 ? RS2 : COMMAND;
  assign wdata  = {{ "setting ? access[31:0] : " if SETTINGS }}place == 2'd0 ? command[63:32] : place == 2'd1 ? command[31:0] : command[95:64];
  assign wstrb  = 4'b1111;
  assign awprot = 3'b000;
  assign araddr = {{ "setting ? access[43:32] : " if SETTINGS }}RESULT;
  assign arprot = 3'b000;
  assign bready = noise[2];
  assign rready = noise[3];

  always @(posedge clk)
    if (rst) begin
      state  <= WRITE;
      place  <= 2'd0;
      index  <= 0;
{% if SETTINGS %}
      set    <= 0;
{% endif %}
      broken <= 1'b0;
      noise  <= 16'hace1;
      {awvalid, wvalid, arvalid} <= 3'b000;
      {address_due, data_due}    <= 2'b00;
    end else begin
      noise <= {noise[14:0], noise[15] ^ noise[13] ^ noise[12] ^ noise[10]};
      if (awvalid && awready) awvalid <= 1'b0;
      if (wvalid && wready)   wvalid  <= 1'b0;
      if (arvalid && arready) arvalid <= 1'b0;
      if (address_due && noise[0]) {awvalid, address_due} <= 2'b10;
      if (data_due && noise[1])    {wvalid, data_due}     <= 2'b10;
      case (state)
{% if SETTINGS %}
        WRITE: if (setting && access[47:44] == 4'd0) {arvalid, state} <= {1'b1, CHECK};
        else begin
{% else %}
        WRITE: begin
{% endif %}
          {address_due, data_due} <= 2'b11;
          state                   <= WAIT;
        end
        WAIT:
          if (bvalid && bready) begin
            if (bresp != 2'b00) broken <= 1'b1;
            state <= WRITE;
{% if SETTINGS %}
            if (setting) set <= set + 1;
            else begin
{% endif %}
            place <= place == 2'd2 ? 2'd0 : place + 2'd1;
            if (place == 2'd2) begin
              index <= index + 1;
              if (index == COMMANDS - 1) {arvalid, state} <= {1'b1, READ};
            end
{% if SETTINGS %}
            end
{% endif %}
          end
{% if SETTINGS %}
        CHECK:
          if (rvalid && rready) begin
            if (rresp != 2'b00 || rdata != access[31:0]) broken <= 1'b1;
            set   <= set + 1;
            state <= WRITE;
          end
{% endif %}
        READ:
          if (rvalid && rready) begin
            // The upper bit: commands wait in the port.
            if (rresp != 2'b00 || rdata[30:0] != 31'd0) broken <= 1'b1;
            if (rdata[31]) arvalid <= 1'b1;
            else           state   <= DONE;
          end
        default: state <= DONE;
      endcase
    end
endmodule
