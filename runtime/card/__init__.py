"""Cards of models: their cost on several designs."""
