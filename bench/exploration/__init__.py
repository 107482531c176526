"""``tilewright explore``: many designs predicted on several networks, and their Pareto front."""
