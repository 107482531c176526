"""What a .tflite file holds as values: tensors, operators and their options, sparse constants, branches."""
