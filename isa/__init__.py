"""The contract between hardware and software; standard library only, but for NumPy in semantics/."""
