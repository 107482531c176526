"""Operators of other tools in ONNX files: those that mean quantisation, and those that are refused."""
