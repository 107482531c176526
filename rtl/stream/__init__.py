"""Streams: pipelines that never stall, queues, commands as they are queued, counters of turns."""
