"""The contract of a pass, and the pipeline that runs passes in order."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tilewright.compiler.graph.graph import Graph
from tilewright.errors import InternalError

__all__ = ["Pass", "PassError", "PassPipeline"]


class PassError(InternalError):
    """A pass broke its own promise: a mistake in the compiler, not in the model."""


class Pass:
    """A named graph-to-graph function with a promise about its result.

    A model that a pass cannot take raises a :exc:`tilewright.compiler.errors.CompileError`.
    """

    @property
    def name(self) -> str:
        """The words of its class: what it does, in short."""
        return re.sub(r"\B(?=[A-Z])", " ", type(self).__name__).lower()

    @property
    def says(self) -> str:
        """The first line of its module, which says in a sentence what it does."""
        return (sys.modules[type(self).__module__].__doc__ or "").partition("\n")[0]

    def apply(self, graph: Graph) -> Graph:
        """Return the rewritten graph; ``graph`` itself is not changed."""
        raise NotImplementedError

    def ensures(self, graph: Graph) -> None:
        """Raise :exc:`PassError` unless the result is as promised."""


def _ignore(done: Pass, graph: Graph) -> None:
    """See a graph and do nothing."""


@dataclass(frozen=True, slots=True)
class PassPipeline:
    """Passes in order; ``observe`` sees the graph after each."""

    passes: tuple[Pass, ...]
    observe: Callable[[Pass, Graph], None] = _ignore

    def __call__(self, graph: Graph) -> Graph:
        for done in self.passes:
            graph = done.apply(graph)
            done.ensures(graph)
            self.observe(done, graph)
        return graph
