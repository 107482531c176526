"""``tilewright explore``: many designs predicted on several networks, and the front of those that nothing beats."""
