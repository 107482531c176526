"""Advice on a run: where its cycles go, and how many a change would save."""
