"""Buffers on the chip, and the ports that share them."""
