"""Synthesis of the gateware with open tools: how large it is on a target, and how fast."""
