"""The RTL simulator: its build and its harness."""
