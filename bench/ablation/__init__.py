"""What each instruction and unit earns: networks on a machine with and without it."""
