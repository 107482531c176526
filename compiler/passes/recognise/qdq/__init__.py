"""The QDQ form of ONNX: float operators between DequantizeLinear and QuantizeLinear."""
