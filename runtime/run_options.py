"""How a session runs a model: energy prices, memory, counting, progress."""

from dataclasses import dataclass, field

from tilewright.compiler.tflite.mark import EngineName as TfliteName
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
        Technology of the report's energy.
    count_toggles : bool
        Let engine ``rtl`` count the register bits that change, instead of predicting them.
    steps : Steps
        Where to show progress.
    memory : MemoryTiming or None
        Of main memory; None for the machine's default.
    extension : Extension or None
        The extension with which a compiled model was compiled; its folder names the file but does not contain it.
    host : HostName or None
        The host core in engine ``rtl``; None for CV32E40X, or for the core with the port for which a model was
        compiled.
    wait : {"poll", "wfi"}
        How the core waits at a fence in engine ``rtl``; a compiled model waits as it was compiled to.
    outputs_only : bool
        Store only the tensors between layers that the network needs, as a compiled model does. Otherwise all are stored
        for the comparison, which takes cycles.
    reference : {"litert", "litert-reference", "tflm"} or None
        Whose arithmetic a .tflite file is computed in, as ``--reference`` of the commands; None for any other model,
        and for that of LiteRT's default session.
    """

    pricing: Pricing = DEFAULT
    count_toggles: bool = False
    steps: Steps = field(default_factory=Silence)
    memory: MemoryTiming | None = None
    extension: Extension | None = None
    host: HostName | None = None
    wait: WaitName = "poll"
    outputs_only: bool = False
    reference: TfliteName | None = None


DEFAULT_RUN = RunOptions()
"""Options of a library call: default prices, predicted toggles, no progress shown."""
