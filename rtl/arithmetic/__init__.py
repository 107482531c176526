"""Arithmetic: products, requantisation, residual addition, the transforms of Winograd."""
