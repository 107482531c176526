"""TensorFlow Lite: a .tflite file becomes an ONNX model that computes the same integers."""
