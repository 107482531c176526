"""Tests of operators of other tools."""
