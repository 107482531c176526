"""Words of 16 bits on a datapath of bytes."""
