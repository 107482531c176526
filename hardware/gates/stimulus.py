"""The RTL's activity at a block's borders, from a waveform: inputs, expected outputs, initial registers."""

from collections.abc import Sequence

import numpy as np

from tilewright.hardware.gates.events import Stimulus
from tilewright.hardware.gates.netlist import Bit, Netlist
from tilewright.hardware.gates.waves import WaveError, Waves

__all__ = ["UNKNOWN", "stimulus_of"]

UNKNOWN = -1
"""An output of which the waveform says nothing."""


def stimulus_of(netlist: Netlist, waves: Waves, scope: str) -> Stimulus:
    """Return the stimulus of a netlist from the waveform of the same RTL, in which its module is ``scope``.

    Raises
    ------
    WaveError
        If the waveform lacks an input, a register, or more than half of the outputs.
    """
    finder = _Finder(waves, scope)
    inputs = [finder.required(bits, "input") for _, bits in netlist.inputs]
    outputs = [finder.find(bits) for _, bits in netlist.outputs]
    registers = []
    for instance in netlist.flops:
        (pin,) = (pin for pin in instance.cell.outputs if pin.name in instance.nets)
        net = instance.nets[pin.name]
        registers.append(int(finder.required(netlist.names.get(net, ()), f"register {instance.name}")[0]))
    known = [output for output in outputs if output is not None]
    if 2 * len(known) < len(outputs):
        raise WaveError(f"Waveform must have at least half of the outputs of {scope}, and has {len(known)} of "
                        f"{len(outputs)}")
    blank = np.full(waves.cycles, UNKNOWN, np.int8)
    empty = np.empty((waves.cycles, 0), np.int8)
    return Stimulus(
        np.stack(inputs, axis=1) if inputs else empty,
        np.stack([blank if output is None else output.astype(np.int8) for output in outputs], axis=1)
        if outputs else empty,
        np.array(registers, np.uint8))


class _Finder:
    """Finds the bits of nets in a waveform by any of their names."""

    def __init__(self, waves: Waves, scope: str) -> None:
        self._waves = waves
        self._scope = scope
        self._signals: dict[str, np.ndarray] = {}

    def find(self, bits: Sequence[Bit]) -> np.ndarray | None:
        """Return the values of a net over time, shape (cycles,), if one of its names is in the waveform."""
        for name, index in bits:
            full = f"{self._scope}.{name}"
            if full not in self._signals:
                if full not in self._waves.codes:
                    continue
                self._signals[full] = self._waves.bits(full)
            signal = self._signals[full]
            if index < signal.shape[1]:
                return signal[:, index]
        return None

    def required(self, bits: Sequence[Bit], what: str) -> np.ndarray:
        if (found := self.find(bits)) is None:
            names = ", ".join(f"{name}[{index}]" for name, index in bits) or "no name"
            raise WaveError(f"Waveform must have the {what} of {self._scope} ({names}), and lacks it")
        return found
