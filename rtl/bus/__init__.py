"""Masters and bridges of the memory bus."""
