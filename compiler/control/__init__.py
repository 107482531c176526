"""Control flow of ONNX, unrolled at compile time: If, Loop, Scan, RNN, GRU and LSTM become operators of one graph."""
