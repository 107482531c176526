"""Gate level: mapped netlists of our blocks, simulated with delays, and what they cost in energy."""
