"""A network over a window of time as one that computes only the new frames, and keeps what it needs of those before."""
