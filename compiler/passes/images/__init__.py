"""Represent tensors of two and three dimensions as images of four, the form that the datapath computes."""
