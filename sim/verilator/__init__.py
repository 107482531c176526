"""The RTL simulator: its build, its harness, and runs on it."""
