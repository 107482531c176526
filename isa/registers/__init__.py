"""Registers of the AXI4-Lite port beside its commands: windows, interrupt, and what the hardware is."""
