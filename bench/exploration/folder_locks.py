"""Locks in an exploration's folder, which the kernel releases when their process ends, in whatever way."""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["FolderLocks", "JournalLock"]


_MOST_LINE = 1 << 20
"""Bytes of the longest line of a journal."""


class JournalLock:
    """The lock of Optuna's journal; unlike Optuna's own, a killed process does not leave it behind.

    A line that such a process has begun is taken away before the next is written.
    """

    def __init__(self, journal: Path, lock: Path) -> None:
        self._journal, self._lock = journal, lock
        self._held = -1

    def acquire(self) -> bool:
        """Wait for the lock and take it."""
        held = os.open(self._lock, os.O_RDWR | os.O_CREAT)
        fcntl.flock(held, fcntl.LOCK_EX)
        self._held = held
        with self._journal.open("rb+") as file:
            end = file.seek(0, os.SEEK_END)
            size = min(end, _MOST_LINE)
            file.seek(end - size)
            last = file.read(size)
            if last and not last.endswith(b"\n"):
                file.truncate(end - size + last.rfind(b"\n") + 1)
        return True

    def release(self) -> None:
        """Give the lock back."""
        os.close(self._held)


class FolderLocks:
    """The locks of one process: one that processes take in turns, and one that shows that the process is alive.

    Parameters
    ----------
    folder : Path
        Of the exploration; must be there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "locks"
        self.folder.mkdir(exist_ok=True)
        self.owner = uuid.uuid4().hex
        self._life = os.open(self.folder / self.owner, os.O_RDWR | os.O_CREAT)
        fcntl.flock(self._life, fcntl.LOCK_EX)

    @contextmanager
    def turn(self, name: str) -> Iterator[None]:
        """Hold the lock ``name`` until the block ends; wait for it first."""
        with (self.folder / name).open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def lives(self, owner: str) -> bool:
        """Tell whether the process called ``owner`` has not ended."""
        if owner == self.owner:
            return True
        try:
            with (self.folder / owner).open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False

    def close(self) -> None:
        """Tell others that this process has ended."""
        (self.folder / self.owner).unlink(missing_ok=True)
        os.close(self._life)
