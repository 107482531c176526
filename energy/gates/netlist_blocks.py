"""Blocks of the machine as netlists: which modules each consists of, and what is cut out of them.

They are those of `sim.verilog.energy_blocks`, by which energy is counted. Lanes are alike: one of them is mapped, and
simulated in the place of each.
"""

from dataclasses import dataclass

from tilewright.energy.gates.mapping import plain_name

__all__ = ["NETLIST_BLOCKS", "MappedModule"]

_COPROCESSOR = "TOP.simulated_soc.soc"
"""Scope in the simulator's waveforms in which the coprocessor is."""

_INNER = "coprocessor.coprocessor"


@dataclass(frozen=True, slots=True)
class MappedModule:
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


_ARRAY = (
    MappedModule("mac.transform"),
    MappedModule("mac.cluster_0.transform"),
    MappedModule("mac.cluster_0.lane_0", places=tuple(f"mac.cluster_0.lane_{lane}" for lane in range(4))),
)

NETLIST_BLOCKS: dict[str, tuple[MappedModule, ...]] = {
    "array": _ARRAY,
    "sequencer": (MappedModule("mac", cut=("mac.buffer", "mac.transform", "mac.cluster_0")),),
    "activation_buffer": (MappedModule("mac.buffer"),),
    "weight_buffer": (MappedModule("mac.cluster_0.weights"),),
    "post_processing": (MappedModule("post"),),
    "load": (MappedModule("load"),),
    "store": (MappedModule("store"),),
    "control": (MappedModule("", cut=("load", "mac", "post", "store")),),
}
"""By the names of `sim.verilog.energy_blocks.ENERGY_BLOCKS`."""


def _module(path: str) -> str:
    return plain_name(f"{_INNER}.{path}" if path else "coprocessor")


def _scope(path: str) -> str:
    inner = f".{_INNER}." + ".".join(map(plain_name, path.split("."))) if path else ".coprocessor"
    return _COPROCESSOR + inner
