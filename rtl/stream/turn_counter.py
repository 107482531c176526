"""A counter of the remaining turns, with a register that marks the last turn."""

from amaranth import Module, Signal, Value

__all__ = ["TurnCounter"]


class TurnCounter:
    """Counts turns down; ``last`` is high during the last one.

    Parameters
    ----------
    name : str
        Name of the register with the turns left.
    width : int
        Its width.
    last : str
        Name of the register of the last turn.
    """

    def __init__(self, name: str, width: int, *, last: str) -> None:
        self._left = Signal(width, name=name)
        self.last = Signal(name=last)

    def load(self, m: Module, turns: Value, *, once: Value | None = None) -> None:
        """Begin with ``turns`` turns, at least one; ``once``: there is one only, where that is in a register."""
        m.d.sync += [self._left.eq(turns), self.last.eq(turns == 1 if once is None else once)]

    def step(self, m: Module) -> None:
        """Go on to the next turn."""
        m.d.sync += [self._left.eq(self._left - 1), self.last.eq(self._left == 2)]
