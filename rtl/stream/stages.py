"""Streams without back-pressure: the signature of their values, and pipelines of them that never stall."""

from amaranth import Module, ShapeLike, Signal, Value, ValueLike
from amaranth.lib.wiring import Out, Signature

__all__ = ["Pipeline", "announced_flow", "flow"]


def flow(payload: ShapeLike) -> Signature:
    """Return the signature of values that may come in any cycle and cannot be held back."""
    return Signature({"valid": Out(1), "payload": Out(payload)})


def announced_flow(payload: ShapeLike) -> Signature:
    """Return the signature of a `flow` that says in ``next``, in the cycle before, that a value will come."""
    return Signature({"next": Out(1), "valid": Out(1), "payload": Out(payload)})


class Pipeline:
    """Named values that move on by one stage per cycle.

    ``step(name=value)`` registers new values and begins the next stage; ``pipeline.name`` is the named value as it
    stands in the present stage.  What earlier stages made arrives there through registers added on demand, so
    nothing rides further than it is needed.  Data registers load only where a value passes and have no reset;
    ``valid`` has one.

    Parameters
    ----------
    m : Module
        Gets the registers.
    valid : Value
        A value enters the first stage.
    prefix : str
        Begins the names of the registers.
    inputs : ValueLike
        Named values of the first stage.
    """

    def __init__(self, m: Module, valid: Value, *, prefix: str = "", **inputs: ValueLike) -> None:
        self._m = m
        self._prefix = prefix
        self._valids = [valid]
        self._values: dict[str, tuple[int | None, ValueLike]] = {}  # name: (stage that made it, value there)
        self.join(**inputs)

    @property
    def depth(self) -> int:
        """Stages begun since the first, which is the latency in cycles."""
        return len(self._valids) - 1

    @property
    def valid(self) -> Value:
        """Whether the present stage holds a value."""
        return self._valids[-1]

    def __getattr__(self, name: str) -> ValueLike:
        if name not in self._values:
            raise AttributeError(f"Pipeline must have been given {name!r}; it has {sorted(self._values)}")
        made, value = self._values[name]
        if made is None:
            return value
        for stage in range(made, self.depth):
            value = self._register(name, value, stage)
        self._values[name] = (self.depth, value)
        return value

    def join(self, **values: ValueLike) -> None:
        """Name values that stand in the present stage already."""
        self._values |= {name: (self.depth, value) for name, value in values.items()}

    def hold(self, **values: ValueLike) -> None:
        """Name values that are the same in every stage: none changes while the pipeline holds anything."""
        self._values |= {name: (None, value) for name, value in values.items()}

    def step(self, **values: ValueLike) -> None:
        """Register ``values``, computed from the present stage, and begin the next stage."""
        stage = self.depth
        valid = Signal(name=f"{self._prefix}valid_{stage + 1}")
        self._m.d.sync += valid.eq(self.valid)
        registers = {name: self._register(name, value, stage) for name, value in values.items()}
        self._valids.append(valid)
        self.join(**registers)

    def _register(self, name: str, value: ValueLike, stage: int) -> ValueLike:
        value = value if hasattr(value, "shape") else Value.cast(value)
        register = Signal(value.shape(), name=f"{self._prefix}{name}_{stage + 1}", reset_less=True)
        with self._m.If(self._valids[stage]):
            self._m.d.sync += register.eq(value)
        return register
