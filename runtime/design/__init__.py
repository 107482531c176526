"""Designs: a machine with its memory, its clock and its technology, as files and as flags."""
