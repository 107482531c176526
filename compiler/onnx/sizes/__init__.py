"""Sizes of open dimensions, and whether a model takes them."""
