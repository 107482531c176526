"""The control of the array: commands in, one tile slot per cycle out."""
