"""Networks that people use: what they cost on each preset, where they run, and whether they are exact."""
