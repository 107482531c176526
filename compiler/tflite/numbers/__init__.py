"""The integer arithmetic of the engines of TensorFlow Lite, where ONNX Runtime has another."""
