"""Semantics of the seven instructions: their effect on the coprocessor's state and on memory, values only."""
