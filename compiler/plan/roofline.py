"""The roofline of a network on a machine, to which shares in plans and benchmarks refer.

    layer    max(array, bus)                                                   cycles, perfectly overlapped
    array    tiles · steps · ceil(O / lanes)                                   by the better algorithm
             conv23   tiles = ceil(H / 2) · ceil(W / 2)    steps = C           2x2 outputs of one channel a cycle
             conv     tiles = H · W                        steps = runs of 16 bytes, or 8 of two rows, over the kernel
    bus      ceil((input + output + residual + constants) / bus)               each byte once, without latency
    network  sum over its layers, one after the other

H x W are the sums that are computed, before a max pooling. Edge tiles and partial words are so in the formula, as no
schedule can avoid them; post-processing, weight fetches of short tile groups and whatever is loaded twice are not.
Two things can beat it: a layer's weights that cross the bus while the array still works on the layers before, in
small networks, whose layers alternate between the two bounds; and tensors that stay on chip
(compiler/schedule/chaining.py).
"""

import math
from dataclasses import dataclass

from tilewright.compiler.network.layers import Layer, Network
from tilewright.compiler.network.options import BEST
from tilewright.compiler.plan.algorithms import forms, loop_nests
from tilewright.compiler.plan.footprint import slots_of, table_bytes
from tilewright.compiler.plan.tiles import axes
from tilewright.isa.machine import PARAMETER_BYTES, Machine

__all__ = ["Roofline", "layer_roofline", "least_bytes", "roofline_cycles"]


@dataclass(frozen=True, slots=True)
class Roofline:
    """Least cycles of the array and of the bus for one layer."""

    compute_cycles: int
    memory_cycles: int

    @property
    def cycles(self) -> int:
        """The slower of the two."""
        return max(self.compute_cycles, self.memory_cycles)


def layer_roofline(layer: Layer, machine: Machine) -> Roofline:
    """Return the roofline of one layer."""
    channels, options = layer.conv_shape[0], BEST.on(machine)
    compute = min(math.prod(slots_of(form.conv_shape[1], form.conv_shape[2], channels, each, machine)) * each.steps
                  for form, algorithm in forms(layer, options) for each in loop_nests(form, algorithm, machine))
    return Roofline(compute, -(-least_bytes(layer) // machine.bus_bytes))


def least_bytes(layer: Layer) -> int:
    """Return the bytes that must cross the bus: whatever the layer looks at or makes, once.

    A 1x1 kernel with a stride looks at some rows and columns only.
    """
    seen = math.prod(axis.images * len(axis.cut(0, axis.out).image) for axis in axes(layer))
    tensors = layer.in_shape[0] * seen + math.prod(layer.out_shape) * (2 if layer.residual else 1)
    constants = 0 if layer.weights is None else layer.weights.size + PARAMETER_BYTES * layer.conv_shape[0]
    return tensors + constants + table_bytes(layer)


def roofline_cycles(network: Network, machine: Machine) -> int:
    """Return the roofline of ``network``: its layers on the datapath, one after the other."""
    return sum(layer_roofline(layer, machine).cycles for layer in network.layers if isinstance(layer, Layer))
