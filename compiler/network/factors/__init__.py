"""Weights that the network computes: the layers that write them as `ldw` loads them."""
