"""Findings as tables for a person; the packages that find them know no tables."""
