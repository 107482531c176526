"""Finding and running external tools; caches, files, progress and Markdown."""
