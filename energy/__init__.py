"""What runs take in energy: actions counted, prices of technologies, estimates."""
