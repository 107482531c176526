"""Commands of design: those that show, compare and search machines."""
