"""Cases of the benchmarks: networks x machines with every optimisation, and on one machine without each of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.compiler.network.options import BEST, Options
from tilewright.errors import InputError
from tilewright.isa.machine import PRESETS, Machine
from tilewright.models import BUILTIN, LARGE, NAMES, PUBLISHED
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchCase:
    """One run: a network by name on a machine, by an engine, compiled with ``options``; default memory timing."""

    network: str
    machine: Machine
    engine: EngineName
    options: Options = BEST

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


def matrix(networks: Iterable[str], machines: Iterable[str] | None, engine: EngineName) -> tuple[BenchCase, ...]:
    """Return the cases, network by network; whatever runs in RTL is predicted by ``fast`` too.

    Images of 224 x 224 take minutes to an hour in RTL. So it runs them with every optimisation only, and, unless
    machines are named, on ``COMPARED`` only; the rest of them is predicted.

    Parameters
    ----------
    machines
        Names of presets; all of them if None.

    Raises
    ------
    InputError
        If a name is unknown.
    """
    if engine not in ENGINES:
        raise InputError(f"Engine must be one of {', '.join(ENGINES)}, not {engine!r}")
    names = _choose(networks, NAMES, "Networks")
    sizes = tuple(PRESETS) if machines is None else _choose(machines, tuple(PRESETS), "Machines")
    return tuple(case for name in names for case in _cases(name, sizes, engine, named=machines is not None))


def _cases(network: str, machines: Sequence[str], engine: EngineName, *, named: bool) -> Iterator[BenchCase]:
    large = network.endswith("-224")
    for machine in machines:
        yield BenchCase(network=network, machine=PRESETS[machine], engine="fast")
    if engine != "fast":
        for machine in machines if named or not large else [COMPARED]:
            yield BenchCase(network=network, machine=PRESETS[machine], engine=engine)
    compared = PRESETS[COMPARED if COMPARED in machines else machines[0]]
    for options in VARIANTS:
        yield BenchCase(network=network, machine=compared, engine="fast" if large else engine, options=options)
