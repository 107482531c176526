"""ONNX Runtime as the reference, and how tensors are held to it."""
