"""A network for several images at a time."""
