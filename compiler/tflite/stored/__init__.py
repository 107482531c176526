"""Values that a .tflite file holds: tensors, operators and their options, sparse constants, branches."""
