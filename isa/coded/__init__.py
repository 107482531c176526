"""Weights coded without loss: the reference of the decoder behind ldw."""
