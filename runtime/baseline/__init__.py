"""Baselines: the same network in C on a core alone."""
