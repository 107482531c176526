"""The network of fused layers: layers, tensors, and where they lie in memory."""
