"""Gate level: mapped netlists of our blocks, simulated with delays, and their energy."""
