"""Streams: pipelines with back-pressure, and commands as they are queued."""
