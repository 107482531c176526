"""Whole numbers in place of float32 scales, for machines that have nothing else."""
