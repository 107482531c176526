"""How a session runs a model: energy prices, memory, counting, progress."""

from dataclasses import dataclass, field

from tilewright.energy.pricing import DEFAULT, Pricing
from tilewright.isa.command_port import WaitName
from tilewright.isa.core_names import HostName
from tilewright.isa.extension import Extension
from tilewright.isa.machine import MemoryTiming
from tilewright.tools.progress import Silence, Steps

__all__ = ["DEFAULT_RUN", "RunOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run.

    Attributes
    ----------
    pricing : Pricing
        The technology in which the report's energy is.
    count_toggles : bool
        Let engine ``rtl`` count how many register bits change, instead of predicting them.
    steps : Steps
        Where to show progress.
    memory : MemoryTiming or None
        Of main memory; None for the machine's default.
    extension : Extension or None
        The instruction that a compiled model was compiled with: its folder names the file, and does not hold it.
    host : HostName or None
        The core beside the coprocessor in engine ``rtl``; None for CV32E40X, or for the one whose port a compiled model
        was compiled for.
    wait : {"poll", "wfi"}
        What the core does at a fence in engine ``rtl``; a compiled model does what it was compiled to do.
    outputs_only : bool
        Store of the tensors between layers only what the network needs, as the compiled model does. Else each is stored
        for the comparison, which takes cycles.
    """

    pricing: Pricing = DEFAULT
    count_toggles: bool = False
    steps: Steps = field(default_factory=Silence)
    memory: MemoryTiming | None = None
    extension: Extension | None = None
    host: HostName | None = None
    wait: WaitName = "poll"
    outputs_only: bool = False


DEFAULT_RUN = RunOptions()
"""Options of a library call: default prices, predicted toggles, no progress shown."""
