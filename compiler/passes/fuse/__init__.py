"""Passes that fuse operators into the layer before them."""
