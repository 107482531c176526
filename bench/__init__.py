"""``tilewright bench``: the cases, their runs and cache, and the resulting page."""
