"""Tensors of two and three dimensions as images of four, which is what the datapath computes."""
