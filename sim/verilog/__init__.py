"""Verilog from the gateware, and the sources of the host cores."""
