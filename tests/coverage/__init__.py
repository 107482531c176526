"""Coverage of the gateware: what its runs in RTL have come across, and what not."""
