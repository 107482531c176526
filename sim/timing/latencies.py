"""Latencies of the components in rtl/, in cycles, as numbers: sim/ imports nothing from there, and tests compare."""

from tilewright.isa.counters import COUNTERS

__all__ = [
    "BURST_TO_ROOM", "COMMAND_GAP", "CURVE_LATENCY", "DECODE_GAP", "DRAIN_SEEN", "FRONT_TO_BUS", "MAC_LATENCY",
    "NORM_GRANT", "NORM_LATENCY", "OWN_UNIT_LATENCY", "POST_LATENCY", "QUEUE_LATENCY", "QUIET_CYCLES", "READS_MADE",
    "READ_TO_BUS", "READ_TO_LOCAL", "READ_TO_SIGNAL", "RECORD_MARGIN", "RECORD_TO_WALK", "RESIDUAL_LATENCY",
    "RING_SUMS", "ROW_GRANT", "ROW_LATENCY", "ROW_SETTLING", "ROW_TO_SIGNAL", "RUNS_AHEAD", "SEGMENTS", "STORE_TO_BUS",
    "STORE_WORDS", "SUMS_SAVED", "TABLE_LATENCY", "WALK_CYCLES", "WALK_INTERVAL", "WALK_TO_BUS", "WORD_TO_SIGNAL",
]

QUEUE_LATENCY = 2
"""rtl.stream.commands.CommandQueue.LATENCY."""

RING_SUMS = 16
"""rtl.array.sequencer.slots.DEPTH: sums that a lane keeps; over `tiles`, tile groups that wait for post-processing."""

MAC_LATENCY = {"winograd": 14, "plain": 12, "inner": 13, "winograd_inner": 16}
"""By array, rtl.array.mac.MacUnit.latency_of: with fetch_slots, from a group's last slot to sums_available."""

SUMS_SAVED = {"winograd": 0, "plain": 3, "inner": 2, "winograd_inner": 0}
"""By array, how much earlier sums come: rtl.array.mac.MacUnit.SUMS_LATENCY less sums_latency_of."""

READS_MADE = 6
"""From a command's last slot until act_free and wgt_free can be taken: rtl.array.sequencer, its two stages and
rtl.buffers.activation_buffer.READ_LATENCY, and the semaphore."""

OWN_UNIT_LATENCY = 15
"""rtl.array.extension_unit: from taking a command to its end, less a cycle for each word and those of the component."""

COMMAND_GAP = 4
"""rtl.post.post.PostUnit.COMMAND_GAP."""

DRAIN_SEEN = 2
"""From the cycle in which post-processing takes a run until the array begins steps without room for their sums:
DRAIN_LATENCY of rtl.post.post.PostUnit and of rtl.array.sequencer."""

POST_LATENCY = 24
"""rtl.post.post.PostUnit.latency, the signal's register and the semaphore: from a vector's request to out_ready."""

RESIDUAL_LATENCY = 50
"""The same with residual, less rtl.post.residual_stage.ResidualStage.interval."""

CURVE_LATENCY = 8
"""rtl.post.post.PostUnit.CURVE_LATENCY: how much later words of 16 bits come with a curve."""

TABLE_LATENCY = 3
"""rtl.post.post.PostUnit.TABLE_LATENCY: how much later with a value table."""

ROW_LATENCY = 11
"""rtl.post.row_unit.RowUnit.latency_of, less the depth of a tree over its lanes: from a step to its results."""

ROW_GRANT = 22
"""RowUnit.granted_of, less the same: from a row's last addition to its first result."""

NORM_GRANT, NORM_LATENCY = 15, 3
"""RowSpread.CYCLES and RowUnit.NORM_STAGES: how much later both are in a normalisation."""

ROW_SETTLING = 3
"""From the step that ends the finding of a row's largest element to the first that reads the row where it is kept."""

ROW_TO_SIGNAL = 19
"""From a row's entries until out_ready can be taken: those of a sum's, without its way out of the array."""

FRONT_TO_BUS = 5
"""From a load command's start to its first burst: rtl.load.load_front, two queues, rtl.port.window_check,
rtl.bus.axi."""

WORD_TO_SIGNAL = 3
"""From the last word on the bus until its semaphore can be taken: rtl.load.row_writer, the signal's register."""

DECODE_GAP = 5
"""Of a block of coded weights, beyond the cycles of decoding: LATENCY of rtl.load.weight_decoder, which waits until
rtl.load.row_writer has written what came before, and LATENCY of that."""

SEGMENTS = 16
"""rtl.load.load.LoadUnit.SEGMENTS: how far its front may be ahead of the data."""

STORE_TO_BUS = 11
"""From a store command's start to its first word on the bus: rtl.store.store_front, result buffer, queue, register."""

BURST_TO_ROOM = 4
"""From a burst's start on the bus until another may take its place among the outstanding ones, less the latency of
memory: rtl.bus.axi.AxiWriter, its register of addresses, the word, and the queue for responses. Fitted; a table of
floats, whose bytes are stored one by one, holds it in RTL (tests/end_to_end/test_float_bytes.py)."""

STORE_WORDS = 16
"""rtl.store.store.StoreUnit.WORDS: how far its reads may be ahead of the bus."""

RUNS_AHEAD = 3
"""Runs beyond which the store takes no command: rtl.store.store.RUNS queued behind its front, and one being read."""

READ_TO_BUS = 7
"""From a read of the result buffer to its word on the bus."""

READ_TO_SIGNAL = 7
"""From the last read of the result buffer until out_free can be taken."""

READ_TO_LOCAL = 9
"""From the last read of the result buffer until act_ready can be taken."""

RECORD_TO_WALK = 1
"""From a status command, when all stores are complete, until the counters are asked for."""

WALK_CYCLES = 1 + len(COUNTERS)
"""rtl.port.performance_counters.Counters: from the beginning of a walk until another can begin."""

WALK_INTERVAL = 63
"""rtl.port.performance_counters.INTERVAL: from the beginning of a walk to that of the next, if nobody asks for one
before."""

WALK_TO_BUS = 3
"""From the beginning of a walk to a record's first word on the bus, less the cycles in which its counters come."""

RECORD_MARGIN = 4
"""Cycles that a record takes beyond those, so that programs, which end with one, end when they do in RTL: fitted."""

QUIET_CYCLES = 5
"""``FENCE_CYCLES`` of rtl.port.dispatcher: from the last activity to the end of a fence, with its own cycle."""
