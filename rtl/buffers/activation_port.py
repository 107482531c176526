"""One write port of the activation buffer for two writers."""

from amaranth import Module, Mux
from amaranth.lib import stream, wiring
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import In, Out

from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.activation_buffer import activation_write_signature

__all__ = ["ActivationPort", "activation_write_stream"]


def activation_write_stream(machine: Machine) -> stream.Signature:
    """Return the stream form of the write port, for a writer that can be held back."""
    return stream.Signature(StructLayout({
        **({"blocked": 1} if machine.winograd else {}), "address": 20, "count": 5, "data": 8 * machine.written_bytes,
    }))


class ActivationPort(wiring.Component):
    """Pass on the writes of the load unit, and those of the store unit in the cycles between.

    The load goes first and never waits, since it holds up main memory; the store waits while the load writes.
    There is no latency.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    load : ``In(activation_write_signature(machine))``
    store : ``In(activation_write_stream(machine))``
    o : ``Out(activation_write_signature(machine))``
        To the buffer, which takes a write in every cycle.
    """

    def __init__(self, machine: Machine) -> None:
        super().__init__({
            "load": In(activation_write_signature(machine)),
            "store": In(activation_write_stream(machine)),
            "o": Out(activation_write_signature(machine)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        load, store, o = self.load, self.store, self.o
        m.d.comb += [
            store.ready.eq(~load.valid),
            o.valid.eq(load.valid | store.valid),
            *[getattr(o, name).eq(Mux(load.valid, getattr(load, name), getattr(store.payload, name)))
              for name in store.payload.shape().members],
        ]
        return m
