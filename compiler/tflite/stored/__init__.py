"""How a .tflite file stores constants of few elements."""
