"""ONNX's operators as kernels of the host core."""
