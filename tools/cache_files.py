"""Files of the cache: written whole, and only where they changed."""

import os
from pathlib import Path


def write_if_changed(path: Path, text: str) -> bool:
    """Make ``path`` hold ``text``; return whether it had to be written.

    An unchanged file keeps its time of modification, so that make rebuilds nothing. The file is replaced in
    one step: another process sees the old text or the new, never half of it.
    """
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return True
