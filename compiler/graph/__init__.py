"""The graph that passes rewrite, and the arithmetic of its quantised operators."""
