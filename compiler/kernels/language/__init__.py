"""The language of kernels: expressions and loops that are both NumPy and C."""
