"""Requantisation in whole numbers, as integer networks define it: a multiplier, an addend and a shift."""
