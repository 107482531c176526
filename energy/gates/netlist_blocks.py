"""Blocks of the machine as netlists: which modules each consists of, and what is cut out of them.

They are those of `sim.verilog.energy_blocks`, by which energy is counted. Lanes are alike: one of them is mapped, and
simulated in the place of each.
"""

from dataclasses import dataclass

from tilewright.energy.gates.mapping import plain_name

COPROCESSOR = "TOP.simulated_soc.soc"
"""Scope in the simulator's waveforms in which the coprocessor is."""

_INNER = "coprocessor.coprocessor"


@dataclass(frozen=True, slots=True)
class Part:
    """A module of the coprocessor, by its path below `Coprocessor`; empty for all around that.

    Attributes
    ----------
    path : str
    cut : tuple of str
        Paths of modules in it that belong to other parts.
    places : tuple of str
        Paths of the instances that it stands for; of its own if empty.
    """

    path: str
    cut: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    @property
    def module(self) -> str:
        """Name of its module in `mapping.plain_verilog`."""
        return _module(self.path)

    @property
    def cut_modules(self) -> tuple[str, ...]:
        """Names of the modules to cut out."""
        return tuple(map(_module, self.cut))

    @property
    def scopes(self) -> tuple[str, ...]:
        """Scopes of its instances in a waveform."""
        return tuple(_scope(path) for path in self.places or (self.path,))


ARRAY = (
    Part("mac.transform"),
    Part("mac.cluster_0.transform"),
    Part("mac.cluster_0.lane_0", places=tuple(f"mac.cluster_0.lane_{lane}" for lane in range(4))),
)

BLOCKS: dict[str, tuple[Part, ...]] = {
    "array": ARRAY,
    "sequencer": (Part("mac", cut=("mac.buffer", "mac.transform", "mac.cluster_0")),),
    "activation_buffer": (Part("mac.buffer"),),
    "weight_buffer": (Part("mac.cluster_0.weights"),),
    "post_processing": (Part("post"),),
    "load": (Part("load"),),
    "store": (Part("store"),),
    "control": (Part("", cut=("load", "mac", "post", "store")),),
}
"""By the names of `sim.verilog.energy_blocks.BLOCKS`."""


def _module(path: str) -> str:
    return plain_name(f"{_INNER}.{path}" if path else "coprocessor")


def _scope(path: str) -> str:
    inner = f".{_INNER}." + ".".join(map(plain_name, path.split("."))) if path else ".coprocessor"
    return COPROCESSOR + inner
