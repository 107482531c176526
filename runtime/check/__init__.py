"""What is said of a model before anything is built."""
