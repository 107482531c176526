"""Bits of weights and of activations, layer by layer, of a quantised model."""
