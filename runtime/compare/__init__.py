"""Comparison layer by layer, down to the instruction that wrote a wrong byte."""
