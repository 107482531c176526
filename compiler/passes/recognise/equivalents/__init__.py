"""Operators that the datapath lacks, in terms of those that it has."""
