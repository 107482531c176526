"""Findings about a model before anything is built."""
