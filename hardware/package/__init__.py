"""The coprocessor as a Verilog package: sources, testbench, constraints, README."""
