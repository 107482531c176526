"""The contract between hardware and software; it imports only the standard library, and NumPy in semantics/."""
