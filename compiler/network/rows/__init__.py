"""Operators along rows as layers of the datapath."""
