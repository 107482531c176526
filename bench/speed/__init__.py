"""How fast Tilewright's own machinery is."""
