"""RTL runs by ranges of layers, in parallel and resumable."""
