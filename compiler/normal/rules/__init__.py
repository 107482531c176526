"""The rules that make the normal form, a module each."""
