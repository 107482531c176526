"""ONNX Runtime as the reference, and the comparison of tensors with it."""
