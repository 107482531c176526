"""Rows of the result buffer in integers: the reference of the row unit."""
