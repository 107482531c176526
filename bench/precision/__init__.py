"""Bits of layers as parameters of a search: what each choice costs in accuracy, cycles, energy, bytes and area."""
