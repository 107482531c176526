"""Calibration: prices of a technology measured at gate level on stretches of real runs."""
