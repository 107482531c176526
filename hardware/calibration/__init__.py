"""Calibration: prices of a technology measured at gate level on windows of real runs."""
