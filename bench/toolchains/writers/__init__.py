"""One module for each tool: it runs in the tool's own environment and writes a network in each of the tool's forms."""
