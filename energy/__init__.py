"""Energy of runs: counted actions, prices of technologies, estimates."""
