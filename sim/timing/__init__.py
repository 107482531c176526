"""Time: the cycle model of coprocessor, bus and host core."""
