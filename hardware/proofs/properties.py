"""The proved properties: each with its design, its method of proof, and the mutants that the method refutes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from tilewright.hardware.proofs.linear_values import input_values, inverse_values, weight_values
from tilewright.hardware.proofs.proved_designs import Mutant, ProvedDesign
from tilewright.hardware.proofs.recovery_values import (
    ERASING,
    RECOVERING,
    erasure_exposed,
    erasure_values,
    recovery_exposed,
    recovery_values,
    semaphore_exposed,
    semaphore_values,
)
from tilewright.hardware.proofs.stop_values import (
    STOP_OUTSTANDING,
    port_stop_exposed,
    port_stop_values,
    stop_exposed,
    stop_values,
)

__all__ = ["PROPERTIES", "Property"]


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a design: the assertions of ``source``, a file of this folder or a template of one.

    Attributes
    ----------
    values
        Fill the template.
    name
        Name for the command.
    claim
        The proved claim, its range and its assumptions.
    mutants
        Bugs that the proof finds, at least one.
    bound
        Of an induction, the steps within which every cover is reached and every mutant refuted. Of a pipeline, which
        has no state but what is on its way, the steps after which its result has come: checking those is complete.
    pipeline
        Whether it is checked from any state for ``bound`` steps; else by induction over one step.
    exposed
        Signals inside the design that the invariants name.
    """

    name: str
    claim: str
    source: str
    design: ProvedDesign
    mutants: tuple[Mutant, ...]
    bound: int
    pipeline: bool = False
    exposed: tuple[str, ...] = ()
    values: Callable[[], Mapping[str, object]] = dict


_FIFO = "amaranth.lib.fifo"
_INNER_READ = "do_inner_read  = inner_r_rdy & (~self.r_rdy | self.r_en)"
_COMMANDS = "tilewright.rtl.stream.commands"
_QUEUE = ("fifo.storage*", "fifo.w_port__addr", "fifo.r_port__addr", "fifo.inner_level")
_CHECK = "tilewright.rtl.port.window_check"
_SPLITTERS = tuple(f"{unit}.splitter.{name}"
                   for unit in ("reader", "writer") for name in ("word", "left", "busy", "last"))
_AXI = "tilewright.rtl.bus.axi"
_REGISTERS = "tilewright.rtl.port.command_registers"
_REQUANTISE = "tilewright.rtl.arithmetic.requantise"
_WINOGRAD = "tilewright.rtl.arithmetic.winograd"
_XIF = "tilewright.rtl.port.xif"
_COPROCESSOR = "tilewright.rtl.coprocessor"
_FAULTS = "tilewright.rtl.port.fault_control"
_SEMAPHORES = "tilewright.rtl.port.semaphores"
_ERASER = "tilewright.rtl.load.eraser"
_STORE = "tilewright.rtl.store.store"
_UNITLESS = "tilewright.hardware.proofs.unitless_coprocessor"

PROPERTIES = (
    Property(
        name="command_queue",
        claim="A queue of four commands neither loses, duplicates, changes nor reorders commands, and its `empty` is "
              "correct.",
        source="command_queue.sv",
        design=ProvedDesign(_COMMANDS, "CommandQueue", (4,)),
        exposed=_QUEUE,
        mutants=(
            Mutant("a command leaves that nobody took", "tilewright.rtl.stream.queues",
                   "queue.r_en.eq(target.ready)", "queue.r_en.eq(1)"),
            Mutant("empty while one command is left", _COMMANDS,
                   "fifo.level == 0", "fifo.level <= 1"),
        ),
        bound=10,
    ),
    Property(
        name="collisions",
        claim="A queue of four commands, whose memory gives anything for a word that is read while it is written, "
              "keeps what `command_queue` says: no such word is used. The queues of the dispatcher and of the residual "
              "adder are of this kind. The other clocked memories are buffers: `semaphore_protocol` is about their "
              "places, and simulations invert every such word of theirs (`tests/sim/verilog/test_collisions.py`).",
        source="command_queue.sv",
        design=ProvedDesign(_COMMANDS, "CommandQueue", (4,), collides=True),
        exposed=_QUEUE,
        mutants=(
            Mutant("a full queue takes a command as one leaves", _FIFO, _INNER_READ,
                   f"{_INNER_READ}\n        m.d.comb += self.w_rdy.eq((inner_level != inner_depth) | do_inner_read)"),
            Mutant("what is written is read at once", _FIFO, "inner_r_rdy.eq(inner_level != 0),",
                   "inner_r_rdy.eq((inner_level != 0) | do_write),"),
            Mutant("empty while one command is left", _COMMANDS, "fifo.level == 0", "fifo.level <= 1"),
        ),
        bound=10,
    ),
    Property(
        name="command_registers",
        claim="The AXI4-Lite port with a queue of four commands gives each write and each read one response, that of "
              "a write after its address and its data, and keeps it until it is taken. A write to `command` that is "
              "answered OKAY becomes a command that leaves once, after earlier ones, with the operands that were "
              "written last, unless an abort overtakes it, which leaves none. A write to `control` is carried out "
              "once, in the cycle in which all of it is there, also while a command before it waits for room. A write "
              "that is answered with SLVERR queues nothing, changes no operand, and sets `refused`, which stands until "
              "an abort clears it. This holds for all masters, "
              "whatever the coprocessor does. It does not cover which words are instructions.",
        source="command_registers.sv",
        design=ProvedDesign(_REGISTERS, "CommandRegisters", (), (("depth", 4),)),
        exposed=("done", "has_address", "has_data", "write_address", "write_data", "write_strobes", "rs1", "rs2",
                 "stale", "acted", "sends", "refused",
                 *(f"following_{name}" for name in ("has_address", "has_data", "write_address", "write_data",
                                                    "write_strobes")),
                 "queue.storage*", "queue.w_en", "queue.w_port__addr", "queue.r_port__addr", "queue.level"),
        mutants=(
            Mutant("a command lost where the queue is full", _REGISTERS, "axi.bready) & ~held),", "axi.bready)),"),
            Mutant("control waits its turn", _REGISTERS, "write.controls(self.machine) | follows),",
                   "write.controls(self.machine)),"),
            Mutant("a command that an abort has overtaken", _REGISTERS, " & ~stale & ~self.abort)", " & ~self.abort)"),
            Mutant("a response before the data", _REGISTERS, "self.has_address & self.has_data",
                   "self.has_address"),
            Mutant("a response changes while it waits", _REGISTERS, "(~axi.bvalid | axi.bready) &", ""),
            Mutant("an abort leaves refused as it was", _REGISTERS, "m.d.sync += [refused.eq(0), *(",
                   "m.d.sync += [*("),
            Mutant("refused is forgotten at once", _REGISTERS, "m.d.sync += refused.eq(1)",
                   "m.d.sync += refused.eq(~refused)"),
            Mutant("strobes of no account", _REGISTERS, "write.at(name) & write.strobes[place]", "write.at(name)"),
        ),
        bound=14,
    ),
    Property(
        name="xif_adapter",
        claim="The CV-X-IF adapter: each instruction accepted and committed becomes one command, unchanged and in "
              "order, and has one result, with its id, its rd and the fault code at its commit, from the cycle after "
              "its commit until taken; what is killed, flushed in ID or not accepted has neither, and nothing has "
              "either before its commit. An abort is no command: it is told at its commit, waits for no command, and "
              "leaves none of those before it. What is not accepted is never held up, a fence passes no command "
              "before it. No deadlock: while the core is held up, each command taken, result taken and commit brings "
              "the end closer, and at the end it is let go. For all cores that have at most two instructions issued "
              "and not committed, commit in order and after the cycle of issue, and give an instruction's id again if "
              "it was flushed in ID, as CV32E40X 0.6.0 does; they may withdraw offers, withhold results, kill and "
              "flush at any time.",
        source="xif_adapter.sv",
        design=ProvedDesign(_XIF, "XifAdapter"),
        exposed=("newer", "newer_valid", "older", "older_valid",
                 *(f"{queue}.{name}" for queue, place in (("committed", "consume"), ("answers", "r_port__addr"))
                   for name in ("level", "storage*", "w_port__addr", place)),
                 "committed.has_room", "committed.has_entry"),
        mutants=(
            Mutant("a killed instruction is carried out", _XIF, " & ~self.commit_kill", ""),
            Mutant("a result for what was not accepted", _XIF, "commits_newer & newer.ours |", "commits_newer |"),
            Mutant("a queue may overflow", _XIF, "((committed.w_level <= self.DEPTH - 3) | offer.aborts) & ", ""),
            Mutant("an abort behind a full queue", _XIF, " | offer.aborts) &", ") &"),
            Mutant("an abort leaves commands", _XIF, "ResetInserter(self.abort)(committed)", "committed"),
            Mutant("a fence passes a command in EX", _XIF, " & ~uncommitted.older_valid & self.idle", " & self.idle"),
            Mutant("what vanished in ID holds up a fence", _XIF,
                   "uncommitted.newer_valid & (uncommitted.newer.id != self.issue_id)", "uncommitted.newer_valid"),
        ),
        bound=14,
    ),
    Property(
        name="memory_windows",
        claim="No burst that leaves the coprocessor touches a byte outside the windows that permit it, and once a read "
              "or a write was refused, no further one of its kind passes. This holds for all requests, two windows of "
              "any kind, every behaviour of memory, and words of 8 bytes.",
        source="memory_windows.sv",
        design=ProvedDesign("tilewright.hardware.proofs.guarded_master", "GuardedMaster", (8,),
                            (("outstanding", 2), ("windows", 2))),
        exposed=(*(f"axi.{name}" for name in _SPLITTERS), "read_check.request", "read_check.end", "read_check.sound",
                 "write_check.request", "write_check.end", "write_check.sound",
                 *(f"{check}_check.{name}" for check in ("read", "write") for name in ("held", "o__valid", "fault"))),
        mutants=(
            Mutant("the end wraps at 2**32", _CHECK, "end = Signal(33)", "end = Signal(32)"),
            Mutant("one word past the limit", _CHECK, "(end <= window.limit)", "(end <= window.limit + 8)"),
            Mutant("reads need no permission", _CHECK, "else window.readable)", "else 1)"),
            Mutant("requests pass after a breach", _CHECK, "~self.halt & ~self.fault &", "~self.halt &"),
            Mutant("the request behind a breach passes", _CHECK, "held.eq(taken & ~breach)", "held.eq(taken)"),
        ),
        bound=4,
    ),
    Property(
        name="bus_master",
        claim="The AXI4 master with two outstanding bursts of 8-byte words keeps AR, AW and W stable until they are "
              "taken. No burst crosses 4 KiB, WLAST marks the last word of each burst, and no word precedes its "
              "address. Words reach a unit only for bursts that are outstanding and were asked for since the last "
              "halt; others are taken and dropped, and reported where no burst is theirs. A burst of reads ends with "
              "RLAST or with as many words as were asked for, and where these differ there is a fault. During a halt "
              "nothing begins. This holds for all requests and memories, provided that no B precedes the last W of its "
              "burst.",
        source="bus_master.sv",
        design=ProvedDesign(_AXI, "AxiMaster", (8,), (("outstanding", 2),)),
        exposed=(*_SPLITTERS, *(f"{queue}.{name}" for queue in ("reader.pending", "writer.pending", "writer.lengths")
                                for name in ("level", "has_room", "has_entry")),
                 "writer.lengths.storage*", "reader.pending.storage*", "reader.pending.r_port__addr",
                 "reader.pending.w_port__addr", "reader.ends", "reader.received",
                 "reader.orphans", "reader.has_orphans", "writer.sent", "writer.lengths.r_port__addr",
                 "writer.lengths.w_port__addr"),
        mutants=(
            Mutant("WLAST a word early", _AXI, "sent == lengths.r_data", "sent + 1 == lengths.r_data"),
            Mutant("AW changes while it waits", _AXI, "(~axi.awvalid | axi.awready) & pending.w_rdy", "pending.w_rdy"),
            Mutant("words of forgotten bursts", _AXI, "self.o.valid.eq(axi.rvalid & wanted)",
                   "self.o.valid.eq(axi.rvalid)"),
            Mutant("words of bursts before the halt", _AXI, "pending.r_rdy & ~has_orphans &", "pending.r_rdy &"),
            Mutant("a last word without RLAST is none", _AXI, "axi.rready & (axi.rlast | on_last) &",
                   "axi.rready & axi.rlast &"),
            Mutant("RLAST of no account", _AXI, " | (axi.rlast ^ on_last)", ""),
            Mutant("AR withdrawn at a halt", _AXI, "self.halt & ~(axi.arvalid & ~axi.arready)", "self.halt"),
            Mutant("a write begins during a halt", _AXI, "(owed < WRITES_AHEAD) & ~self.halt", "(owed < WRITES_AHEAD)"),
            Mutant("a burst over 4 KiB", _AXI, "room.eq(~word[:self.burst_bits])", "room.eq(~0)"),
            Mutant("a short request's only burst over 4 KiB", _AXI, "last.eq(beats <= ~first[:self.burst_bits])",
                   "last.eq(beats[self.burst_bits:] == 0)"),
        ),
        bound=10,
    ),
    Property(
        name="stop",
        claim="A halt of the bus master behind its window checks, with 4 bursts in each direction, ends when memory "
              "has taken at most 71 words, has answered at most 4 bursts, and in two more cycles; in every other "
              "cycle memory holds it up, by an address or a word that it does not take or a response that it does "
              "not give. What is quiet stays so. For all requests, and provided that no B precedes the last W of its "
              "burst, and that the store unit offers words from the third cycle on, as `store_stop` shows. The cycle "
              "from a stop or an abort to the halt is that of `registers_stop` and `xif_stop`; one more leads from "
              "quiet to its end, and is not covered.",
        source="stop.sv.j2",
        values=stop_values,
        design=ProvedDesign("tilewright.hardware.proofs.guarded_master", "GuardedMaster", (4,),
                            (("outstanding", STOP_OUTSTANDING), ("windows", 2))),
        exposed=stop_exposed(),
        mutants=(
            Mutant("writes begin however many words are owed", _AXI, "pending.w_rdy & (owed < WRITES_AHEAD) &",
                   "pending.w_rdy &"),
            Mutant("what is left of a request of reads is asked for", _AXI,
                   "splitter.cancel.eq(self.halt & ~(axi.arvalid & ~axi.arready))", "splitter.cancel.eq(0)"),
            Mutant("a check takes requests in a halt", _CHECK, "self.i.ready.eq(~self.halt & ", "self.i.ready.eq("),
        ),
        bound=12,
    ),
    Property(
        name="store_stop",
        claim="From the third cycle of a halt on the store unit offers a word in each cycle, none with a byte enabled "
              "but one that stood before. For all commands and all that the units around it do.",
        source="store_stop.sv",
        design=ProvedDesign(_STORE, "StoreUnit", (RECOVERING,)),
        exposed=("halts",),
        mutants=(
            Mutant("no words where the queue has none", _STORE, "valid & to_memory) | halt),", "valid & to_memory)),"),
            Mutant("bytes of the stopped program", _STORE, "strobe = Mux(halt, 0, Mux(",
                   "strobe = Mux(0, 0, Mux("),
        ),
        bound=24,
    ),
    Property(
        name="registers_stop",
        claim="The whole coprocessor behind its AXI4-Lite registers, its units, which may do anything, left out. In "
              "the cycle after all of a write to `control` is there, also behind a command that waits for room, a "
              "stop has become a fault and an abort has begun, and units are held: `stop` and `recovery` lead from "
              "there to the end, and `command_registers` shows that such a write is carried out in that cycle and "
              "once. The same for the pin `stop_request`. A stop in the one cycle in which a halt ends with a reset "
              "finds nothing to stop. For all masters and memories.",
        source="stop_ports.sv.j2",
        values=partial(port_stop_values, "axi4lite"),
        design=ProvedDesign(_UNITLESS, "UnitlessAxiLiteCoprocessor", (RECOVERING,)),
        exposed=port_stop_exposed("axi4lite"),
        mutants=(
            Mutant("a stop reaches nobody", "tilewright.rtl.axilite_coprocessor", ', "stop_request": "stop"}', "}"),
            Mutant("an abort reaches nobody", "tilewright.rtl.axilite_coprocessor", '"abort_request": "abort", ', ""),
            Mutant("an abort is no reason to stop", _FAULTS, "| expired | self.abort_request):", "| expired):"),
            Mutant("an abort as another ends is lost", _FAULTS, "with m.If(self.abort_request | wants_erasure):",
                   "with m.If(wants_erasure):"),
        ),
        bound=12,
    ),
    Property(
        name="xif_stop",
        claim="The same behind the CV-X-IF adapter: in the cycle after an abort was committed, as `xif_adapter` shows "
              "that it is told, it has begun, and units are held; and after `stop_request` they are. For all cores "
              "and memories.",
        source="stop_ports.sv.j2",
        values=partial(port_stop_values, "cvxif"),
        design=ProvedDesign(_UNITLESS, "UnitlessXifCoprocessor", (RECOVERING,)),
        exposed=port_stop_exposed("cvxif"),
        mutants=(
            Mutant("an abort reaches nobody", "tilewright.rtl.xif_coprocessor", '"abort_request": "abort", ', ""),
            Mutant("an abort of the port is none", _COPROCESSOR, "self._dispatcher.abort_taken | self.abort_request)",
                   "self._dispatcher.abort_taken)"),
            Mutant("stop_request is no fault", _COPROCESSOR, "(STOPPED, self.stop_request, 0),",
                   "(STOPPED, self.waits, 0),"),
        ),
        bound=12,
    ),
    Property(
        name="semaphores",
        claim="Each semaphore is the number of its events less those taken, however many come in a cycle; it is "
              "available in the cycle after an event, and a take while it is not does nothing. An event more than it "
              "counts is told two cycles later, with the semaphore that passed its limit first, and nothing else is.",
        source="semaphores.sv.j2",
        values=semaphore_values,
        design=ProvedDesign(_SEMAPHORES, "Semaphores"),
        exposed=semaphore_exposed(),
        mutants=(
            Mutant("two events count as one", _SEMAPHORES, "signalled.bit_count()", "min(signalled, 1)"),
            Mutant("the last one stays available", _SEMAPHORES, "remains.eq(total != 0)",
                   "remains.eq(count != 0)"),
            Mutant("a take of nothing", _SEMAPHORES, '_take") & available', '_take")'),
        ),
        bound=6,
    ),
    Property(
        name="recovery",
        claim="Faults, aborts, fences and the watchdog in the coprocessor as it is wired, its units, which may do "
              "anything, left out. Units are reset only when every write that the bus has begun has ended and nothing "
              "is asked for; no word of an old burst becomes data of a new request; queues, semaphores, checks and "
              "bus master are then as after reset. The first fault keeps code and address from the cycle after it was "
              "raised until an abort, which forgets it; `fault` and a code other than 0 are the same. Nothing passes "
              "to a unit while units stop; after a fault only `sta.status` does, to the store. A fence is taken when "
              "queues are empty, units were quiet for four cycles and memory has acknowledged all writes, or the "
              "machine is dead. Where the host waits and nothing moves for 257 cycles units stop, and in 256 more "
              "they are reset or the machine is dead, and then takes every command. Where units work for 4,096 cycles "
              "and take no further command they stop. Provided that no B precedes its address and the last W of its "
              "burst.",
        source="recovery.sv.j2",
        values=recovery_values,
        design=ProvedDesign(_UNITLESS, "UnitlessCoprocessor", (RECOVERING,)),
        exposed=recovery_exposed(),
        mutants=(
            Mutant("reset while a read is asked for", _COPROCESSOR, "~axi.read_asks & ~read_check.busy &", ""),
            Mutant("a word of an old burst", _COPROCESSOR, "axi.clear.eq(control.clear),", ""),
            Mutant("semaphores outlive an abort", _COPROCESSOR, "cleared(Semaphores())", "Semaphores()"),
            Mutant("commands pass after a fault", _COPROCESSOR,
                   "dispatcher.drop.eq(self.fault & ~self._control.aborting)", "dispatcher.drop.eq(0)"),
            Mutant("a fence does not wait for memory", _COPROCESSOR, ".any() | ~self._write_idle)", ".any())"),
            Mutant("a later fault replaces the first", _FAULTS, "(phase == Phase.RUN) & ~self.fault",
                   "phase == Phase.RUN"),
            Mutant("an abort keeps the fault", _FAULTS, "aborting.eq(0), self.fault.eq(0),", "aborting.eq(0),"),
            Mutant("a command at work is none", _COPROCESSOR, "works.eq(~dispatcher.idle)", "works.eq(self.irq)"),
        ),
        bound=12,
    ),
    Property(
        name="erasure",
        claim="On a machine with `erasure` = 2, from each abort to its end no command reaches a unit but those of "
              "`isa.erasure`, which the load unit gets once each and in order; the abort ends only when it has taken "
              "the last one and has not been busy for seven cycles. An abort during an erasure erases again. Units, "
              "which may do anything, are left out: that the commands reach every byte is simulated "
              "(`tests/cocotb/stop/test_tenants.py`).",
        source="erasure.sv.j2",
        values=erasure_values,
        design=ProvedDesign(_UNITLESS, "UnitlessCoprocessor", (ERASING,)),
        exposed=erasure_exposed(),
        mutants=(
            Mutant("an abort without erasure", _COPROCESSOR, "control.abort_request if always else asks", "asks"),
            Mutant("the abort ends before the erasure", _FAULTS, "with m.Elif(self.aborting):",
                   "with m.If(self.aborting):"),
            Mutant("a command that the load has not taken", _ERASER, "with m.If(self.o.valid & self.o.ready):",
                   "with m.If(self.o.valid):"),
            Mutant("done while the load works", _ERASER, "settled == self.SETTLES_CYCLES - 1)", "1)"),
            Mutant("a command at work is none", _ERASER, "self.busy | self.o.valid", "self.o.valid"),
            Mutant("queued commands in between", _ERASER, "self.o.valid.eq(1)", "self.o.valid.eq(self.i.valid)"),
        ),
        bound=24,
    ),
    Property(
        name="input_transform",
        claim="The input transform of `conv23` equals Bᵀ d B of `isa.numerics` for all int8 patches and passes runs "
              "unchanged; 10 bits hold every value.",
        source="linear_transform.sv.j2",
        values=input_values,
        design=ProvedDesign(_WINOGRAD, "InputTransform", (1,)),
        mutants=(
            Mutant("one sign", _WINOGRAD, "d[2] - d[1], d[1] - d[3]", "d[1] - d[2], d[1] - d[3]"),
            Mutant("nine bits", _WINOGRAD, "DATA = signed(10)", "DATA = signed(9)"),
        ),
        bound=1,
        pipeline=True,
    ),
    Property(
        name="weight_transform",
        claim="The weight transform of `conv23` equals 2G g 2Gᵀ of `isa.numerics` for all int8 kernels and passes runs "
              "unchanged; 12 bits hold every value.",
        source="linear_transform.sv.j2",
        values=weight_values,
        design=ProvedDesign(_WINOGRAD, "WeightTransform"),
        mutants=(
            Mutant("not doubled", _WINOGRAD, "outer - g[1], g[2] << 1", "outer - g[1], g[2]"),
            Mutant("the next kernel's mode", _WINOGRAD, "Mux(pipe.dot, passed[k]", "Mux(i.dot, passed[k]"),
        ),
        bound=2,
        pipeline=True,
    ),
    Property(
        name="inverse_transform",
        claim="The inverse transform of `conv23` equals Aᵀ M A / 4 of `isa.numerics` wherever that is an integer of 20 "
              "bits. For a run, its outputs are sums that together contain each of the 16 products of int8 numbers "
              "once.",
        source="linear_transform.sv.j2",
        values=inverse_values,
        design=ProvedDesign(_WINOGRAD, "InverseTransform"),
        mutants=(
            Mutant("21 bits between the passes", _WINOGRAD, "columns[x][y][:22]", "columns[x][y][:21]"),
            Mutant("divided by two", _WINOGRAD, "y[k][2:22]", "y[k][1:21]"),
        ),
        bound=2,
        pipeline=True,
    ),
    Property(
        name="requantise",
        claim="Requantisation rounds like `isa.numerics.requantise` for all sums, biases, scales, zero points and "
              "bounds: to 24 bits, times the scale, to 24 bits, to an integer, halves to even each time. The reference "
              "here is its definition in bit vectors. Each multiplier is assumed to multiply "
              "(`rtl.arithmetic.product`, one line), and the four products are arbitrary: the proof shows that they "
              "are summed in the right places.",
        source="requantise.sv",
        design=ProvedDesign(_REQUANTISE, "Requantise", (1,)),
        exposed=("factor_5", "product_9", "*_product.product"),
        mutants=(
            Mutant("halves away from zero", _REQUANTISE, "(half & (rest | kept[0]))", "half"),
            Mutant("a product in a wrong place", _REQUANTISE, "middle=pipe.middle_a + pipe.middle_b)",
                   "middle=pipe.middle_a + (pipe.middle_b << 1))"),
            Mutant("bits lost below the shift", _REQUANTISE, "lost | bottom.any())", "bottom.any())"),
        ),
        bound=14,
        pipeline=True,
    ),
    Property(
        name="integer_requantise",
        claim="With `integer_requantise`, sums become levels in whole numbers as sources define it, for all sums, "
              "biases, multipliers, shifts, zero points and bounds: by floor((sum * multiplier + addend) / 2^shift) "
              "with multipliers of 18 bits, or by multipliers of 31, rounded once, halves up, or twice as gemmlowp "
              "does. Each multiplier is assumed to multiply: the proof shows that its factors are parts of the sum and "
              "of the multiplier, and that the four products, which are arbitrary, are summed in the right places.",
        source="integer_requantise.sv.j2",
        values=partial(dict, alone=False, meta=138),
        design=ProvedDesign(_REQUANTISE, "Requantise", (1,), (("integers", True),)),
        exposed=("factor_5", "product_9", "*_product.product", "*_product.b"),
        mutants=(
            Mutant("a nudge where there is no second rounding", _REQUANTISE,
                   "self.twice & pipe.places[SHIFT_BITS - 1]", "self.twice"),
            Mutant("a shifted quotient goes up by the bit below it", _REQUANTISE,
                   "Mux(self._is_long, moved[0], pipe.negative)", "moved[0]"),
            Mutant("one less where the sum is not negative", _REQUANTISE,
                   "(negative & ~twice).replicate", "(~twice).replicate"),
            Mutant("a large quotient is none", _REQUANTISE, "~great.replicate(BYTE), great)",
                   "~great.replicate(BYTE), Const(0, 1))"),
            Mutant("a long multiplier without its top bit", _REQUANTISE, "pipe.addend[-2:], 1)",
                   "pipe.addend[-2:], Const(0, 1))"),
        ),
        bound=14,
        pipeline=True,
    ),
    Property(
        name="integers_alone",
        claim="The same of a machine without `float_requantise`, whose layers that are none of these have the scale 1: "
              "there the level is the sum, whatever the numbers are.",
        source="integer_requantise.sv.j2",
        values=partial(dict, alone=True, meta=137),
        design=ProvedDesign(_REQUANTISE, "Requantise", (1,), (("integers", True), ("floats", False))),
        exposed=("factor_5", "product_9", "*_product.product", "*_product.b"),
        mutants=(
            Mutant("a multiplier where there is none", _REQUANTISE, "Mux(self.integer, request.mantissa[:18], 1)",
                   "request.mantissa[:18]"),
            Mutant("a shift where there is none", _REQUANTISE, "self.shifts & self.integer.replicate(SHIFT_BITS)",
                   "self.shifts"),
            Mutant("an addend where there is none", _REQUANTISE, "else ~self.long & self.integer", "else ~self.long"),
        ),
        bound=14,
        pipeline=True,
    ),
)
