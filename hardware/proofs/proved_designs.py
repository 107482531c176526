"""The designs of the proofs as Verilog, and the same with a deliberate bug in their source."""

import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

from tilewright.hardware.proofs.unrolled_model import ProofError
from tilewright.sim.verilog.collisions import with_unknown_collisions
from tilewright.sim.verilog.elaborate import verilog

__all__ = ["Mutant", "ProvedDesign"]

# Modules that are made anew when one of them has a bug, so that all of them agree on their types.
_REMADE = ("tilewright.rtl", "tilewright.hardware.proofs.guarded_master",
           "tilewright.hardware.proofs.unitless_coprocessor")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug: in the source of ``module``, ``old``, which is there once, becomes ``new``."""

    name: str
    module: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ProvedDesign:
    """A component: a class of ``module``, made with ``arguments`` and ``options``.

    ``collides``: its clocked memories give any word for one that is written as it is read.
    """

    module: str
    component: str
    arguments: tuple[object, ...] = ()
    options: tuple[tuple[str, object], ...] = ()
    collides: bool = False

    def verilog(self, mutant: Mutant | None = None) -> str:
        """Return it as Verilog, module ``dut``, with the bug of ``mutant`` if given.

        Raises
        ------
        ProofError
            If the mutant's text is not in its module exactly once.
        """
        if mutant is None:
            return self._made()
        with _mutated(mutant):
            return self._made()

    def _made(self) -> str:
        component = getattr(importlib.import_module(self.module), self.component)
        text = verilog(component(*self.arguments, **dict(self.options)), "dut")
        return with_unknown_collisions(text) if self.collides else text


@contextmanager
def _mutated(mutant: Mutant) -> Iterator[None]:
    """Have modules made anew, one of them with a bug, until the block ends."""
    original = importlib.import_module(mutant.module)
    source = inspect.getsource(original)
    if source.count(mutant.old) != 1:
        raise ProofError(f"Mutant {mutant.name!r} must find its text in {mutant.module} once, not "
                         f"{source.count(mutant.old)} times; correct the mutant: {mutant.old!r}")
    kept = {name: module for name, module in sys.modules.items()
            if name == mutant.module or any(f"{name}.".startswith(f"{each}.") for each in _REMADE)}
    for name in kept:
        del sys.modules[name]
    try:
        parent, _, _ = mutant.module.rpartition(".")
        importlib.import_module(parent)
        changed = ModuleType(mutant.module)
        changed.__package__ = parent
        changed.__file__ = original.__file__
        sys.modules[mutant.module] = changed
        exec(compile(source.replace(mutant.old, mutant.new), mutant.name, "exec"), changed.__dict__)
        yield
    finally:
        for name in [name for name in sys.modules if any(f"{name}.".startswith(f"{each}.") for each in _REMADE)]:
            del sys.modules[name]
        sys.modules.update(kept)
        for name, module in kept.items():
            above, _, last = name.rpartition(".")
            setattr(sys.modules[above], last, module)
