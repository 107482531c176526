"""The entries of a curve of words of 16 bits (`isa.words.word_curve`): how many, their fields, their points."""

__all__ = ["CURVATURE", "CURVE_BYTES", "ENTRY_BYTES", "PIECE", "PIECES", "ROUNDINGS", "SLOPE", "UNITS", "VALUE"]

PIECES = 128
PIECE = 512
"""Words of a piece."""

ENTRY_BYTES = 8
CURVE_BYTES = PIECES * ENTRY_BYTES

VALUE, SLOPE, CURVATURE = 24, 18, 16
"""Bits of the fields of an entry, from bit 0 on; the rest is 0. All are signed."""

UNITS = 7, 13, 20
"""Binary digits behind the point of value, slope and curvature."""

ROUNDINGS = UNITS[2] - UNITS[1], UNITS[1] - UNITS[0]
"""Digits that a curvature's product loses, and that a value gains, to count as a slope and its product do."""
