"""The instructions, as a table, as JSON, as a C header and as a page."""
