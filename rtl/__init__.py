"""The gateware, in Amaranth."""
