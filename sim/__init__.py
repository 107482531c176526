"""Simulated machines: the fast engine, of values and predicted time, and the RTL engine."""
