"""The language of kernels: expressions and loops that are NumPy and C alike."""
