"""The contract between hardware and software; standard library only."""
