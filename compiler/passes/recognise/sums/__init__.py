"""Products whose result stays float or int32: their sums leave the datapath whole, and are scaled behind it."""
