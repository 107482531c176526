"""ONNX files in: cleaning, shapes, faults, and the graph that comes out."""
