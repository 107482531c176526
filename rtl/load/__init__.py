"""The load unit: bursts in, rows into the buffers."""
