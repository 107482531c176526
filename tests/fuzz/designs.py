"""Machines drawn from the whole space, in RTL: ``python -m tests.fuzz.designs --designs 30 --seed 0``.

Design number n of a seed is always the same. Each runs four small networks: RTL, the fast engine and ONNX Runtime must
agree in every tensor, and the cycles that the fast engine predicts must be within 2 % of RTL's where a network takes
20,000 or more; of layers that the host core computes, because the machine lacks their unit, within 35 %. Exit
status 1 if one does not hold. A simulator is built for each design, which takes minutes: with ``--results FILE`` a run
that was killed goes on where it was, and ``--wide 32 64`` adds a design of each of so many lanes.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from tests.fuzz.oracle import judge
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_file
from tilewright.compiler.errors import CompileError
from tilewright.isa.machine import ARRAYS, EXTRA_UNITS, LIMITS, TILE_BYTES, UNITS, Machine, lanes_of_a_fetch
from tilewright.models import builtin
from tilewright.runtime.session import InferenceSession

TOLERANCE = 0.02
CORE_TOLERANCE = 0.35
"""Of layers on the host core, whose cycles are estimated by operation (compiler.kernels.language.core_cycles)."""
LEAST_CYCLES = 20_000
_LARGEST = {"activation_bytes": 1 << 17, "weight_bytes": 1 << 17, "result_bytes": 1 << 16}
"""Of the buffers that are drawn: larger ones differ in no more than bits of an address, and simulate slowly."""


def residual_network() -> bytes:
    """Return a network with residuals, a depthwise layer, a stride and a global average."""
    model = ModelBuilder("qdq", seed=3)
    x = model.relu(model.conv(model.input((1, 3, 24, 24)), 16, pads=(1, 1, 1, 1)))
    y = model.conv(model.relu(model.conv(x, 16, pads=(1, 1, 1, 1))), 16, pads=(1, 1, 1, 1))
    x = model.relu(model.add(y, x))
    x = model.relu(model.conv(x, 16, groups=16, pads=(1, 1, 1, 1)))
    x = model.relu(model.conv(x, 24, kernel=1, strides=(2, 2)))
    x = model.add(model.conv(x, 24, kernel=5, pads=(2, 2, 2, 2)), x)
    return model.finish(model.gemm(model.flatten(model.average(x)), 10))


def pooling_network() -> bytes:
    """Return a network of few channels and large kernels with max pooling, its last one of overlapping windows."""
    model = ModelBuilder("qoperator", seed=4)
    x = model.max_pool(model.conv(model.input((1, 1, 36, 36)), 6, kernel=5), strides=(2, 2))
    x = model.max_pool(model.conv(x, 20, kernel=(3, 7)), kernel=3, strides=(2, 2), pads=(1, 1, 1, 1))
    x = model.max_pool(model.conv(x, 12, pads=(1, 1, 1, 1)), kernel=3, strides=(1, 1))
    return model.finish(model.gemm(model.flatten(x), 33))


def row_network() -> bytes:
    """Return a network with a softmax of the channels of each pixel, and one of a row for each of a few pixels."""
    model = ModelBuilder("qdq", seed=5)
    x = model.conv(model.input((1, 3, 12, 11)), 37, pads=(1, 1, 1, 1))
    for channels in (9, 70):
        y = model.value(x.shape, np.float32(1 / 256))
        model.quantised(model.node("Softmax", [model.dequantised(x)], f"softmax{channels}", axis=1), y)
        x = model.conv(y, channels, kernel=3, strides=(2, 2))
    y = model.value(x.shape, np.float32(1 / 255))
    model.quantised(model.node("Softmax", [model.dequantised(x)], "softmax", axis=1), y)
    return model.finish(model.gemm(model.flatten(model.average(y)), 10))


NETWORKS: dict[str, Callable[[], bytes]] = {
    "lenet5_accel": lambda: Path(builtin("lenet5_accel")).read_bytes(),
    "residuals": residual_network,
    "pooling": pooling_network,
    "rows": row_network,
}


@cache
def network(name: str) -> bytes:
    return NETWORKS[name]()


ALL_LANES = LIMITS["lanes"]


def random_design(rng: np.random.Generator, *, lanes_range: tuple[int, int] = ALL_LANES) -> Machine:
    """Return a machine from the space of `isa.machine`, with least to most lanes as given and no huge buffers."""
    def power(name: str, low: int = 0, high: int = 1 << 30) -> int:
        least, greatest = LIMITS[name]
        low, high = max(low, least), min(high, greatest, _LARGEST.get(name, greatest))
        return 1 << int(rng.integers(low.bit_length() - 1, high.bit_length()))

    array = str(rng.choice(list(ARRAYS)))
    fetched = lanes_of_a_fetch(array)
    lanes, tiles = max(power("lanes", *lanes_range), fetched), power("tiles")
    clusters = power("clusters", low=-(-lanes // (fetched * tiles)), high=lanes // fetched)
    units = {unit: bool(rng.random() < 0.7) for unit in UNITS if unit not in EXTRA_UNITS}
    return Machine(
        name="random", lanes=lanes, tiles=tiles, clusters=clusters, post_lanes=power("post_lanes", high=lanes),
        bus_bytes=power("bus_bytes", high=TILE_BYTES * clusters), activation_bytes=power("activation_bytes", low=4096),
        weight_bytes=power("weight_bytes", low=256 * clusters), result_bytes=power("result_bytes", low=1024),
        parameter_channels=power("parameter_channels", low=lanes), queue_depth=power("queue_depth"),
        array=array, **units, **{unit: bool(rng.random() < 0.7) for unit in EXTRA_UNITS})   # drawn last, as they came


def fits(machine: Machine) -> bool:
    """Return whether every network can be compiled for a design."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name in NETWORKS:
                path = Path(folder) / f"{name}.onnx"
                path.write_bytes(network(name))
                compile_file(path, machine, keep_tensors=True)
    except CompileError:
        return False
    return True


def fitting_design(seed: int, number: int, *, lanes_range: tuple[int, int] = ALL_LANES) -> Machine:
    """Return design ``number`` of ``seed``, on which every network can be compiled."""
    rng = np.random.default_rng((seed, number))
    while True:
        machine = replace(random_design(rng, lanes_range=lanes_range), name=f"design {seed}/{number}")
        if fits(machine):
            return machine


@dataclass(frozen=True, slots=True)
class Trial:
    """A network on a design: cycles by engine, and what does not hold, as sentences."""

    network: str
    fast: int
    rtl: int
    on_core: tuple[int, int] = (0, 0)
    """Cycles of layers that the host core computes: predicted, and in RTL."""
    faults: tuple[str, ...] = ()

    @property
    def error(self) -> float:
        """Of the predicted cycles."""
        return self.fast / self.rtl - 1

    @property
    def as_predicted(self) -> bool:
        """Whether the cycles are, those of the datapath and those of the core."""
        if self.rtl < LEAST_CYCLES:
            return True
        predicted, measured = self.on_core
        return abs(self.datapath_error) <= TOLERANCE and abs(predicted - measured) <= CORE_TOLERANCE * measured

    @property
    def datapath_error(self) -> float:
        """Of the predicted cycles outside layers on the host core, as a share of all cycles in RTL."""
        predicted, measured = self.on_core
        return ((self.fast - predicted) - (self.rtl - measured)) / self.rtl


def try_network(name: str, machine: Machine, *, rtl: bool = True) -> Trial:
    """Run a network on a design and compare."""
    content = network(name)
    verdict, inputs = judge(content, machine=machine)
    faults = [*verdict.mismatches, *verdict.refused, *verdict.rejected]
    cycles, on_core, tensors = {}, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.onnx"
        path.write_bytes(content)
        for engine in ("fast", "rtl") if rtl else ("fast",):
            session = InferenceSession(path, machine, engine, keep_tensors=True)
            session.run(None, inputs)
            cycles[engine], tensors[engine] = session.report.cycles, dict(session.tensors)
            on_core[engine] = sum(layer.cycles for layer in session.report.layers if layer.kind == "core")
    if rtl:
        faults += [f"RTL differs in tensor {each}" for each, values in tensors["fast"].items()
                   if not np.array_equal(values, tensors["rtl"][each])]
    measured = "rtl" if rtl else "fast"
    trial = Trial(name, cycles["fast"], cycles[measured], (on_core["fast"], on_core[measured]), tuple(faults))
    if not trial.as_predicted:
        faults.append(f"predicted {trial.fast} cycles, and RTL takes {trial.rtl}; of the host core {trial.on_core}")
    return replace(trial, faults=tuple(faults))


class Results:
    """Trials in a file of JSON lines, so that a killed run goes on behind the last network it has finished."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[tuple[str, str], Trial] = {}
        for line in path.read_text().splitlines() if path is not None and path.exists() else ():
            entry = json.loads(line)
            trial = Trial(**{**entry["trial"], "on_core": tuple(entry["trial"]["on_core"]),
                             "faults": tuple(entry["trial"]["faults"])})
            self._known[entry["machine"], trial.network] = trial

    def get(self, network: str, machine: Machine) -> Trial:
        """Return what a network does on a machine: as the file has it, or tried now."""
        key = (repr(machine), network)
        if key not in self._known:
            self._known[key] = try_network(network, machine)
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps({"machine": key[0], "trial": asdict(self._known[key])}) + "\n")
        return self._known[key]


def drawn(options: argparse.Namespace) -> Iterator[Machine]:
    """Draw the designs of a run: ``--designs`` of them, and one of each number of lanes in ``--wide``."""
    for number in range(options.first, options.first + options.designs):
        yield fitting_design(options.seed, number, lanes_range=(options.least_lanes, options.most_lanes))
    for number, lanes in enumerate(options.wide, options.first + options.designs):
        yield fitting_design(options.seed, number, lanes_range=(lanes, lanes))


def main() -> int:
    """Try designs one after the other; print a line for each network, and at the end what all have shown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least-lanes", type=int, default=1)
    parser.add_argument("--most-lanes", type=int, default=16)
    parser.add_argument("--wide", type=int, nargs="*", default=(), metavar="LANES",
                        help="and then a design of exactly so many lanes, for each number")
    parser.add_argument("--results", type=Path, help="file of trials; those it has are not run again")
    options = parser.parse_args()
    results, trials, machines = Results(options.results), [], 0
    for machine in drawn(options):
        print(machine, flush=True)
        machines += 1
        for name in NETWORKS:
            trial = results.get(name, machine)
            trials.append(trial)
            print(f"  {name}: RTL {trial.rtl:,}, predicted {trial.fast:,} ({trial.error:+.2%})", *trial.faults,
                  flush=True)
    failed = sum(bool(trial.faults) for trial in trials)
    print(f"{machines} designs: {failed} of {len(trials)} trials failed")
    long = [trial for trial in trials if trial.rtl >= LEAST_CYCLES]
    if long:
        worst = max(long, key=lambda trial: abs(trial.datapath_error))
        print(f"cycles outside the host core, of {len(long)} networks of {LEAST_CYCLES:,} cycles or more: "
              f"{worst.datapath_error:+.2%} at most")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
