"""The network of fused layers: layers, tensors, and their addresses in memory."""
