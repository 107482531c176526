"""Softmax and its logarithm of quantised tensors."""
