"""Semantics of the seven instructions: what each does to the coprocessor's state and to memory, values only."""
