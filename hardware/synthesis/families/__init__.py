"""Families of FPGAs: Yosys commands, cells, devices, and which nextpnr places them."""
