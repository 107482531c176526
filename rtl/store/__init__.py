"""The store unit: rows out, and the status record."""
