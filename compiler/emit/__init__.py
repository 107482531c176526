"""What a compiled model is written down as: C, ELF, artefact."""
