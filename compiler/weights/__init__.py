"""Weights as they lie coded in main memory."""
