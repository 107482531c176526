"""Values: programs executed on arrays, instruction by instruction."""
