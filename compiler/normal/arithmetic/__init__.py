"""Rules on what files spell out in float arithmetic: quantisation, and sums and products behind a convolution."""
