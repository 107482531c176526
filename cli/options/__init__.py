"""Options that commands share, and errors at the command line."""
