"""Parts of a network that run by themselves: a range of layers, or rows of one layer."""
