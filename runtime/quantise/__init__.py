"""Quantisation of float models after training."""
