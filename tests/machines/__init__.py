"""Other computers: which Pythons and wheels Tilewright was tried with."""
