"""Operators that the host core computes in generated C: one kernel per ONNX operator."""
