"""Passes that build layers from the last graph."""
