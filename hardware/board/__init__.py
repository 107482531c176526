"""A network on an FPGA board: memory contents, bitstream, simulation, serial line."""
