"""Float models quantised after training."""
