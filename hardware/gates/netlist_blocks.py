"""Blocks of the machine as netlists: the modules of each block, and those that are cut out.

They are those of `sim.verilog.energy_blocks`, by which energy is counted. Lanes are alike, as are weight buffers and
transforms of weights: one of each is mapped, and simulated in the place of all.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tilewright.hardware.gates.mapping import plain_name
from tilewright.isa.machine import Machine
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS

__all__ = ["MappedModule", "netlist_blocks"]

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


def netlist_blocks(machine: Machine) -> dict[str, tuple[MappedModule, ...]]:
    """Return the parts of each block of a machine, by the names of `sim.verilog.energy_blocks.ENERGY_BLOCKS`."""
    array = tuple(_array(machine))
    beside = tuple(part.path for part in array if not part.path.startswith("mac.cluster_"))
    clusters = tuple(f"mac.cluster_{each}" for each in range(machine.clusters))
    found = {
        "array": array,
        "sequencer": (MappedModule("mac", cut=("mac.buffer", *beside, *clusters)),),
        "activation_buffer": (MappedModule("mac.buffer"),),
        "weight_buffer": (MappedModule("mac.cluster_0.weights", places=tuple(f"{each}.weights" for each in clusters)),),
        "post_processing": (MappedModule("post"),),
        "load": (MappedModule("load"),),
        "store": (MappedModule("store"),),
        "control": (MappedModule("", cut=("load", "mac", "post", "store")),),
    }
    return {name: found[name] for name in ENERGY_BLOCKS}


def _array(machine: Machine) -> Iterator[MappedModule]:
    """Yield the parts of an array: what all lanes share, what those of a cluster share, and a lane."""
    if machine.winograd:
        yield MappedModule("mac.transform")
    if machine.pairs_channels:
        yield MappedModule("mac.patches")
    if machine.inner:
        yield MappedModule("mac.xi")
    transforms = ("transform_0", "transform_1") if machine.pairs_channels else ("transform",) * machine.winograd
    clusters = range(machine.clusters)
    if transforms:
        yield MappedModule(f"mac.cluster_0.{transforms[0]}", places=tuple(
            f"mac.cluster_{cluster}.{each}" for cluster in clusters for each in transforms))
    lanes = machine.lanes // machine.clusters // machine.lanes_per_fetch
    yield MappedModule("mac.cluster_0.lane_0", places=tuple(
        f"mac.cluster_{cluster}.lane_{lane}" for cluster in clusters for lane in range(lanes)))


def _module(path: str) -> str:
    return plain_name(f"{_INNER}.{path}" if path else "coprocessor")


def _scope(path: str) -> str:
    inner = f".{_INNER}." + ".".join(map(plain_name, path.split("."))) if path else ".coprocessor"
    return _COPROCESSOR + inner
