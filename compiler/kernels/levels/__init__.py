"""Functions of quantised tensors: kernels for groups of ONNX operators between quantisations."""
