"""The Verilog package of `tilewright verilog`, driven at its pins."""
