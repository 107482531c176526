"""Simulated machines: functional, cycle-level and RTL."""
