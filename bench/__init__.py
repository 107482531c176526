"""``tilewright bench``: what to run, the runs and their cache, and the page that is made of them."""
