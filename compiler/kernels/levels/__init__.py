"""Functions of quantised tensors: kernels that no operator of ONNX is alone, but what stands between quantisations."""
