"""Options of compilation: the batch, and optimisations that can be turned off for measurements; defaults are best."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from tilewright.isa.machine import Machine

__all__ = ["BEST", "MAX_BATCH", "Options", "Winograd"]

Winograd = Literal["auto", "never"]

MAX_BATCH = 1024
"""Images of a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of compilation. No choice changes a value that a network computes.

    Attributes
    ----------
    fuse_pool : bool
        Max pooling joins the layer before it. Otherwise it is a separate layer of kind ``pass``, and the layer before
        it stores all its results.
    winograd : {"auto", "never"}
        ``auto`` uses ``conv23`` where it is predicted to be faster; ``never`` uses ``conv`` everywhere.
    reuse : bool
        ``conv23`` reads the columns that neighbouring patches share only once. Otherwise it reads whole patches.
    chain : bool
        Results that fit the activation buffer stay there for the next layer. Otherwise every layer reads from main
        memory.
    bands : bool
        Consecutive layers are computed by bands of rows or blocks of channels, of which the activation buffer holds
        those still needed, where that is predicted to be faster. Not in a batch, and not where every tensor is stored
        to be looked at.
    narrow : bool
        Channels that hold a constant whatever the inputs are, or that nothing reads, are not computed where that is
        predicted faster: `compiler.channels`.
    keep_weights : bool or None
        Weights stay on the chip from call to call, all or as many as have room beside the others. By default those of
        a network that says itself what it keeps as state, which is called again and again.
    batch : int
        Images that the program computes at a time, loading every weight once for all: `compiler.batch.in_batch`.
    """

    fuse_pool: bool = True
    winograd: Winograd = "auto"
    reuse: bool = True
    chain: bool = True
    bands: bool = True
    narrow: bool = True
    keep_weights: bool | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        if self.winograd not in get_args(Winograd):
            raise ValueError(f"Option winograd must be one of {', '.join(get_args(Winograd))}, not {self.winograd!r}")
        if type(self.batch) is not int or not 1 <= self.batch <= MAX_BATCH:
            raise ValueError(f"Option batch must be a number of images in 1..{MAX_BATCH}, not {self.batch!r}")

    def on(self, machine: Machine) -> "Options":
        """Return the options that remain on ``machine``, which may lack units."""
        return replace(self, winograd=self.winograd if machine.winograd else "never",
                       reuse=self.reuse and machine.reuses_columns, chain=self.chain and machine.chaining,
                       bands=self.bands and self.chain and machine.chaining and self.batch == 1)

    def __str__(self) -> str:
        said = (("no pool fusion", not self.fuse_pool), ("no Winograd", self.winograd == "never"),
                ("no column reuse", not self.reuse), ("no chaining", not self.chain),
                ("no bands", not self.bands), ("all channels", not self.narrow),
                ("weights kept between calls", self.keep_weights is True),
                ("no weights kept", self.keep_weights is False), (f"a batch of {self.batch}", self.batch > 1))
        return ", ".join(text for text, holds in said if holds) or "every optimisation"


BEST = Options()
"""Everything allowed."""
