"""Views of a run: an HTML page, and a trace of its commands."""
