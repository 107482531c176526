"""Plans: algorithm, tiles and cost of every layer."""
