"""The performance counters of `isa.counters`: cycles by cause, bytes by place."""

from amaranth import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.data import ArrayLayout
from amaranth.lib.wiring import In, Out

from tilewright.isa.counters import COUNTERS
from tilewright.rtl.sequencer import MacState

EVENT_WIDTH = 9
"""Bits of an event count: the weight memories of 16 clusters are read 256 bytes at a time."""

STATES = {
    "mac_issue": MacState.ISSUE,
    "mac_setup": MacState.SETUP,
    "mac_wait_activations": MacState.WAIT_ACTIVATIONS,
    "mac_wait_weights": MacState.WAIT_WEIGHTS,
    "mac_wait_post": MacState.WAIT_POST,
}
"""Counters of the array's states; idle cycles are told apart by who else was busy."""

BUSY = {"load_busy": "load", "store_busy": "store", "post_busy": "post"}

EVENTS = tuple(counter.name for counter in COUNTERS
               if counter.name != "cycles" and not counter.name.startswith("mac_") and counter.name not in BUSY)
"""Counters that step by as much as somebody says."""


class Counters(wiring.Component):
    """Count what happens; ``mac_*`` add up to ``cycles`` in every cycle.

    What happens in a cycle is in the counts two cycles later.

    Members
    -------
    state : ``In(MacState)``
    load_busy, post_busy, store_busy : ``In(1)``
    NAME : ``In(EVENT_WIDTH)``
        For each of ``EVENTS``, how many there were in this cycle.
    counts : ``Out(ArrayLayout(32, len(COUNTERS)))``
        In the order of the table.
    """

    def __init__(self):
        super().__init__({
            "state": In(MacState),
            **{name: In(1) for name in BUSY},
            **{name: In(EVENT_WIDTH) for name in EVENTS},
            "counts": Out(ArrayLayout(32, len(COUNTERS))),
        })

    def elaborate(self, platform):
        m = Module()
        for index, (name, step) in enumerate(self._steps(m).items()):
            count = Signal(32, name=f"{name}_count")
            m.d.sync += count.eq(count + step)
            m.d.comb += self.counts[index].eq(count)
        return m

    def _steps(self, m):
        """Return the step of every counter in this cycle, in the order of the table."""
        idle = self.state == MacState.IDLE
        behind = self.post_busy | self.store_busy
        causes = {
            **{name: self.state == state for name, state in STATES.items()},
            "mac_idle_post": idle & behind,
            "mac_idle_load": idle & ~behind & self.load_busy,
            "mac_idle_host": idle & ~behind & ~self.load_busy,
        }
        # One cause and no other in every cycle, also in the first.
        registered = {name: Signal(name=f"{name}_now", init=name == "mac_idle_host") for name in causes}
        m.d.sync += [registered[name].eq(cause) for name, cause in causes.items()]
        steps = {"cycles": 1, **registered}
        for name in (*BUSY, *EVENTS):
            port = getattr(self, name)
            steps[name] = Signal(len(port), name=f"{name}_now")
            m.d.sync += steps[name].eq(port)
        return {counter.name: steps[counter.name] for counter in COUNTERS}
