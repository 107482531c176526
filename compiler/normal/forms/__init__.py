"""Operators that ONNX or ONNX Runtime defines by simpler ones, and products that are written the other way round."""
