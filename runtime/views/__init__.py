"""Views of a run: a page to look at it, a trace of its commands."""
