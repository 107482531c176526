"""The array: lanes, clusters and their sequencer."""
