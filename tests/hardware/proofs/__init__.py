"""Tests of hardware/proofs."""
