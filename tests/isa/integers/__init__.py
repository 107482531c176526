"""Tests of requantisation in whole numbers."""
