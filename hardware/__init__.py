"""From the gateware to devices: synthesis, boards and Verilog packages."""
