"""What is proved: each property with its design, the way to its proof, and the mutants that the same way refutes."""

from dataclasses import dataclass

from tilewright.hardware.proofs.proved_designs import Mutant, ProvedDesign

__all__ = ["PROPERTIES", "Property"]


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a design: the assertions of ``source``, a file of this folder.

    Attributes
    ----------
    name
        What the command calls it.
    claim
        What is proved, for whom and under which assumptions.
    mutants
        Bugs that the proof finds, at least one.
    bound
        Of an induction, the steps within which every cover is reached and every mutant refuted. Of a pipeline, which
        has no state but what is on its way, the steps after which its result has come: checking those is complete.
    pipeline
        Whether it is checked from any state for ``bound`` steps; else by induction over one step.
    exposed
        Signals inside the design that the invariants name.
    quick
        Whether `make test` proves it too.
    """

    name: str
    claim: str
    source: str
    design: ProvedDesign
    mutants: tuple[Mutant, ...]
    bound: int
    pipeline: bool = False
    exposed: tuple[str, ...] = ()
    quick: bool = True


_FIFO = "amaranth.lib.fifo"
_CHECK = "tilewright.rtl.port.window_check"

PROPERTIES = (
    Property(
        name="command_queue",
        claim="A queue of four commands loses, doubles, changes and reorders none; its `empty` tells the truth.",
        source="command_queue.sv",
        design=ProvedDesign("tilewright.rtl.stream.commands", "CommandQueue", (4,)),
        exposed=("fifo.storage*", "fifo.w_port__addr", "fifo.r_port__addr", "fifo.inner_level"),
        mutants=(
            Mutant("a command leaves that nobody took", "tilewright.rtl.stream.queues",
                   "queue.r_en.eq(target.ready)", "queue.r_en.eq(1)"),
            Mutant("empty while one command is left", "tilewright.rtl.stream.commands",
                   "fifo.level == 0", "fifo.level <= 1"),
        ),
        bound=10,
    ),
    Property(
        name="memory_windows",
        claim="No burst leaves the coprocessor that touches a byte outside the windows which permit it: for all "
              "requests, two windows of any kind, every behaviour of memory, 8 bytes a word.",
        source="memory_windows.sv",
        design=ProvedDesign("tilewright.hardware.proofs.guarded_master", "GuardedMaster", (8,),
                            (("outstanding", 2), ("windows", 2))),
        exposed=("axi.reader.splitter.word", "axi.reader.splitter.left", "axi.reader.splitter.busy",
                 "axi.writer.splitter.word", "axi.writer.splitter.left", "axi.writer.splitter.busy",
                 "read_check.request", "read_check.end", "read_check.sound",
                 "write_check.request", "write_check.end", "write_check.sound"),
        mutants=(
            Mutant("the end wraps at 2**32", _CHECK, "end = Signal(33)", "end = Signal(32)"),
            Mutant("one word past the limit", _CHECK, "(end <= window.limit)", "(end <= window.limit + 8)"),
            Mutant("reads need no permission", _CHECK, "else window.readable)", "else 1)"),
        ),
        bound=4,
    ),
)
