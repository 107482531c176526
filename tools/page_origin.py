"""Where a generated page comes from: the command that made it, the commit of its sources, and the computer."""

import os
import platform
import subprocess
from pathlib import Path

from tilewright._version import __version__

__all__ = ["computer", "with_origin"]

_ROOT = Path(__file__).resolve().parents[1]


def with_origin(page: str, command: str) -> str:
    """Return a page with a line below its title that says by which command, from what and on what it was made."""
    title = next(line for line in page.splitlines() if line.startswith("# "))
    return page.replace(title, f"{title}\n\nMade by `{command}` from {_sources()} on {computer()}.", 1)


def computer() -> str:
    """Return this computer's processor, if it is known, and its number of cores."""
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.is_file() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{next(named, platform.processor() or platform.machine())}, {os.cpu_count()} cores"


def _sources() -> str:
    """Return the commit of a checkout and its day, and whether files differ from it; else the version."""
    if not (_ROOT / ".git").exists():
        return f"Tilewright {__version__}"
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs")
    return f"commit {_git('log', '-1', '--format=%h of %cs')}{', with changes,' if changed else ''}"


def _git(*words: str) -> str:
    return subprocess.run(["git", "-C", str(_ROOT), *words], check=True, capture_output=True, text=True).stdout.strip()
