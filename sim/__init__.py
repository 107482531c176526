"""Simulated machines: the fast engine, for values and predicted time, and the RTL engine."""
