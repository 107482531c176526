"""Where the parts of an ECP5 lie, and which of ours go there."""
