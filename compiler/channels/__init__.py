"""Channels of a network that need no computation, and the network without them."""
