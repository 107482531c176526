"""Files of a compiled model: C, ELF, artefact."""
