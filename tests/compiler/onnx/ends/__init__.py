"""Tests of the ends of models."""
