"""Ends of a model before its own: what is behind them is left to the host."""
