"""Worth of each instruction and unit: networks on a machine with and without it."""
