"""Streams: pipelines that never stall, queues, queued commands, and loop counters."""
