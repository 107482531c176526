"""Names that are given once: the first that is free of those proposed, or the last of them with a number."""

__all__ = ["UniqueNames"]


class UniqueNames:
    """The names of one scope."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, *proposed: str) -> str:
        """Return and keep the first name that is free; ``_2``, ``_3`` … follow the last if none is."""
        number = 2
        for name in proposed:
            if name not in self._taken:
                break
        else:
            while (name := f"{proposed[-1]}_{number}") in self._taken:
                number += 1
        self._taken.add(name)
        return name
