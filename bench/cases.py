"""Cases of the benchmarks: networks x machines with every optimisation, and on one machine without each of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tilewright.compiler.network.options import BEST, Options
from tilewright.errors import InputError
from tilewright.isa.machine import NAMED, PRESETS, Machine, MemoryTiming
from tilewright.models import BUILTIN, LARGE, NAMES, PUBLISHED
from tilewright.runtime.design.design import Design
from tilewright.runtime.design.design_flags import design_of, memory_of
from tilewright.runtime.execution.engines import ENGINES, EngineName

__all__ = [
    "BASELINES", "COMPARED", "FULL", "NO_REUSE", "NO_WINOGRAD", "QUICK", "SIDES", "UNFUSED", "VARIANTS", "BenchCase",
    "matrix",
]

QUICK = ("lenet5", "lenet5_accel", "vgg16-32", "resnet18-32")
"""Networks of ``--quick``."""

FULL = (
    *QUICK,
    *PUBLISHED,
    "resnet50-64",
    "squeezenet-64",
    "mobilenetv2-96",
    "detector-96",
    "resnet18-224",
    "squeezenet-224",
    "mobilenetv2-224",
    "detector-224",
    "resnet50-224",
    "vgg16-224",
)
"""Networks of the whole page, from the shortest run to the longest."""

BASELINES = (*(name for name in FULL if name.startswith(("lenet5", "vgg16-", "resnet18-"))), "resnet50-224")
"""Networks beside which both baselines are run unless all are asked for: the others' take many minutes each."""

SIDES = dict.fromkeys(BUILTIN, "1×32×32") | {
    "mlperf-resnet8": "32×32×3", "mlperf-kws": "49×10×1", "mlperf-vww": "96×96×3", "mlperf-ad": "640",
} | {name: "×".join(("3", *[name.rpartition("-")[2]] * 2)) for name in LARGE}
"""Input of each network: figures of different sizes are not comparable."""

COMPARED = "base"
"""Where the optimisations are compared, if it is among the machines, else on the first; and where large images run."""

UNFUSED = Options(fuse_pool=False)
NO_WINOGRAD = Options(winograd="never")
NO_REUSE = Options(reuse=False)
VARIANTS = (UNFUSED, NO_WINOGRAD, NO_REUSE)

_SCALED = tuple(name for name, machine in NAMED.items() if machine.float_requantise)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCase:
    """One run: a network by name on a machine and its memory, by an engine, compiled with ``options``.

    ``memory`` is None for the machine's default.
    """

    network: str
    machine: Machine
    engine: EngineName
    options: Options = BEST
    memory: MemoryTiming | None = field(default=None, repr=False)

    @property
    def timing(self) -> MemoryTiming:
        """The timing of main memory."""
        return self.memory or MemoryTiming.default(self.machine)

    def __str__(self) -> str:
        limits = "" if self.options == BEST else f", {self.options}"
        return f"{self.network} on {self.machine.name}, engine {self.engine}{limits}"


def _choose(names: Iterable[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """Return ``names`` if all of them are known.

    Raises
    ------
    InputError
        If one is not.
    """
    chosen = tuple(dict.fromkeys(names))
    if unknown := [name for name in chosen if name not in known]:
        raise InputError(f"{what} to bench must be of {', '.join(known)}, not {unknown[0]!r}")
    if not chosen:
        raise InputError(f"{what} to bench must be at least one of {', '.join(known)}")
    return chosen


def matrix(networks: Iterable[str], machines: Iterable[str] | None, engine: EngineName, *,
           memory: str | None = None) -> tuple[BenchCase, ...]:
    """Return the cases, network by network; whatever runs in RTL is predicted by ``fast`` too.

    Images of 224 x 224 take minutes to an hour in RTL. So it runs them with every optimisation only, and, unless
    machines are named, on ``COMPARED`` only; the rest of them is predicted.

    Parameters
    ----------
    machines
        As ``--machine`` takes them; if None all that have a name and float32 scales, which the networks need, and of
        these only presets run in RTL.
    memory
        As ``--memory`` takes it, for all of them; else what the designs state.

    Raises
    ------
    InputError
        If a name is unknown.
    """
    if engine not in ENGINES:
        raise InputError(f"Engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    names = _choose(networks, NAMES, "Networks")
    designs = {text: design_of(text) for text in (_SCALED if machines is None else machines)}
    if not designs:
        raise InputError(f"Machines to bench must be at least one of {', '.join(NAMED)}, or a design file (.toml)")
    if memory is not None:
        designs = {text: replace(each, memory=memory_of(memory, each.machine)) for text, each in designs.items()}
    return tuple(case for name in names for case in _cases(name, designs, engine, named=machines is not None))


def _cases(network: str, designs: Mapping[str, Design], engine: EngineName, *, named: bool) -> Iterator[BenchCase]:
    large = network.endswith("-224")
    yield from (_case(network, design, "fast") for design in designs.values())
    if engine != "fast":
        for text, design in designs.items():
            if named or (text in PRESETS and not large) or text == COMPARED:
                yield _case(network, design, engine)
    compared = designs[COMPARED if COMPARED in designs else next(iter(designs))]
    for options in VARIANTS:
        yield replace(_case(network, compared, "fast" if large else engine), options=options)


def _case(network: str, design: Design, engine: EngineName) -> BenchCase:
    memory = None if design.timing == MemoryTiming.default(design.machine) else design.memory
    return BenchCase(network=network, machine=design.machine, engine=engine, memory=memory)
