"""Tensors of 16 bits, and the layers that compute with them on a machine of wide words."""
