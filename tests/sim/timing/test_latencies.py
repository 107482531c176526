# amaranth: UnusedElaboratable=no
"""Every latency of the cycle model follows from those that the components of the gateware state."""

import pytest

from tilewright.isa.machine import ARRAYS, PRESETS, Machine
from tilewright.rtl.array.mac import MacUnit
from tilewright.rtl.array.sequencer.sequencer import Sequencer
from tilewright.rtl.array.sequencer.slots import DEPTH
from tilewright.rtl.buffers.result_buffer import ResultBuffer
from tilewright.rtl.bus.axi import AxiReader
from tilewright.rtl.load.load import LoadUnit
from tilewright.rtl.load.row_writer import RowWriter
from tilewright.rtl.load.weight_decoder import WeightDecoder
from tilewright.rtl.port.dispatcher import Dispatcher
from tilewright.rtl.port.performance_counters import INTERVAL, Counters
from tilewright.rtl.port.semaphores import Semaphores
from tilewright.rtl.port.window_check import WindowCheck
from tilewright.rtl.post.post import PostUnit
from tilewright.rtl.post.residual_stage import ResidualStage
from tilewright.rtl.post.row_spread import RowSpread
from tilewright.rtl.post.row_unit import RowUnit
from tilewright.rtl.store.status_record import StatusRecord
from tilewright.rtl.store.store import RUNS, StoreUnit
from tilewright.rtl.stream.commands import CommandQueue
from tilewright.sim.timing import latencies
from tilewright.sim.timing.command_work import residual_interval

MACHINES = {array: Machine(array=array) for array in ARRAYS}
LANE = Machine(post_lanes=1)
FITTED = {"BURST_TO_ROOM", "RECORD_MARGIN", "OWN_UNIT_LATENCY"}
"""Values of the model that are no constant of a component; bursts and an extension's unit are held in RTL."""


def test_latencies_are_those_of_the_components():
    signal = PostUnit.SIGNAL_LATENCY + Semaphores.LATENCY
    read = ResultBuffer.READ_LATENCY
    expected = {
        "QUEUE_LATENCY": CommandQueue.LATENCY,
        "RING_SUMS": DEPTH,
        "MAC_LATENCY": {array: MacUnit.latency_of(machine) for array, machine in MACHINES.items()},
        "SUMS_SAVED": {array: MacUnit.SUMS_LATENCY - MacUnit.sums_latency_of(machine)
                       for array, machine in MACHINES.items()},
        "READS_MADE": Sequencer.FREE_LATENCY + Semaphores.LATENCY,
        "COMMAND_GAP": PostUnit.COMMAND_GAP,
        "DRAIN_SEEN": PostUnit.DRAIN_LATENCY + Sequencer.DRAIN_LATENCY,
        "POST_LATENCY": PostUnit.LATENCY + signal,
        "RESIDUAL_LATENCY": PostUnit.RESIDUAL_LATENCY + signal,
        "TABLE_LATENCY": PostUnit.TABLE_LATENCY,
        "CURVE_LATENCY": PostUnit.CURVE_LATENCY,
        "ROW_LATENCY": RowUnit.latency_of(LANE),
        "ROW_GRANT": RowUnit.granted_of(LANE),
        "NORM_GRANT": RowSpread.CYCLES,
        "NORM_LATENCY": RowUnit.NORM_STAGES,
        "ROW_SETTLING": RowUnit.SETTLING,
        "ROW_TO_SIGNAL": PostUnit.VALUE_LATENCY + PostUnit.POOL_LATENCY + signal,
        "FRONT_TO_BUS": LoadUnit.REQUEST_LATENCY + WindowCheck.LATENCY + AxiReader.LATENCY,
        "WORD_TO_SIGNAL": LoadUnit.SIGNAL_LATENCY + Semaphores.LATENCY,
        "DECODE_GAP": WeightDecoder.LATENCY + RowWriter.LATENCY,
        "SEGMENTS": LoadUnit.SEGMENTS,
        "STORE_TO_BUS": StoreUnit.READ_LATENCY + read + StoreUnit.BUS_LATENCY,
        "STORE_WORDS": StoreUnit.WORDS,
        "RUNS_AHEAD": RUNS + 1,
        "READ_TO_BUS": read + StoreUnit.BUS_LATENCY,
        "READ_TO_SIGNAL": read + StoreUnit.FREE_LATENCY + Semaphores.LATENCY,
        "READ_TO_LOCAL": read + StoreUnit.LOCAL_LATENCY + Semaphores.LATENCY,
        "RECORD_TO_WALK": StatusRecord.REQUEST_LATENCY,
        "WALK_CYCLES": Counters.WALK_CYCLES,
        "WALK_INTERVAL": INTERVAL,
        "WALK_TO_BUS": StoreUnit.RECORD_LATENCY,
        "QUIET_CYCLES": Dispatcher.FENCE_CYCLES,
    }
    stated = {name: getattr(latencies, name) for name in latencies.__all__ if name.isupper()}
    assert {name: value for name, value in stated.items() if name not in FITTED} == expected


@pytest.mark.parametrize("machine", PRESETS.values(), ids=lambda machine: machine.name)
def test_residual_adders_take_a_vector_as_often_as_the_component(machine):
    assert residual_interval(machine) == ResidualStage(machine).interval
