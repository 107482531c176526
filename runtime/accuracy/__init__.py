"""Accuracy of a model over a data set: float, quantised, and in hardware."""
