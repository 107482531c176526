"""The gain of batches."""
