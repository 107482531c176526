"""Options that commands share, and how they refuse."""
