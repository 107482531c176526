"""Accuracy of a model over a data set: float, quantised, and as the hardware computes it."""
