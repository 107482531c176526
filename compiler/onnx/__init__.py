"""ONNX files: cleaning, shapes, faults, and the resulting graph."""
