"""The coprocessor with units that may do anything: what the proof of its recovery from faults is about."""

import gc
import warnings
from collections.abc import Callable
from functools import partial

from amaranth import Instance, Module, Signal, Value
from amaranth.hdl import UnusedElaboratable
from amaranth.lib.wiring import Component, Out

from tilewright.isa.machine import Machine
from tilewright.rtl.axilite_coprocessor import AxiLiteCoprocessor
from tilewright.rtl.coprocessor import Coprocessor
from tilewright.rtl.xif_coprocessor import XifCoprocessor

__all__ = ["UnitlessAxiLiteCoprocessor", "UnitlessCoprocessor", "UnitlessXifCoprocessor"]


class _AnyUnit(Component):
    """The ports of a unit; each output has any value in each cycle."""

    def elaborate(self, platform: object) -> Module:
        m = Module()
        outputs = [Value.cast(value) for _, member, value in self.signature.flatten(self) if member.flow is Out]
        for number, output in enumerate(outputs):
            value = Signal(len(output), name=f"value_{number}")
            m.submodules[f"any_{number}"] = Instance("anything", p_WIDTH=len(value), o_o=value)
            m.d.comb += output.eq(value)
        return m


def _any(kind: Callable[[Machine], Component], machine: Machine) -> Component:
    """Return the ports of a unit, which itself is not used."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnusedElaboratable)
        signature = kind(machine).signature
        gc.collect()
    return _AnyUnit(signature)


class UnitlessCoprocessor(Coprocessor):
    """A `Coprocessor` whose units are all `_AnyUnit`; they need the module ``anything`` of `unrolled_model`."""

    UNITS = {name: partial(_any, kind) for name, kind in Coprocessor.UNITS.items()}  # noqa: RUF012


class UnitlessAxiLiteCoprocessor(AxiLiteCoprocessor):
    """A `UnitlessCoprocessor` behind its command registers."""

    COPROCESSOR = UnitlessCoprocessor


class UnitlessXifCoprocessor(XifCoprocessor):
    """A `UnitlessCoprocessor` behind its CV-X-IF adapter."""

    COPROCESSOR = UnitlessCoprocessor
