"""What models cost on several designs."""
