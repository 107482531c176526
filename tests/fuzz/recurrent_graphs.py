"""Random RNNs, GRUs and LSTMs: ``python -m tests.fuzz.recurrent_graphs --graphs 100 --seed 0``.

Each is held twice: unrolled, as floats, against ONNX Runtime's own node; then quantised here, on a machine, against
ONNX Runtime's integers, every tensor (`tests.fuzz.oracle`). Exit status 1 if any differs.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import onnxruntime

from tests.fuzz.oracle import Verdict, judge
from tests.support.recurrent_models import recurrent_model
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.unrolling import unrolled
from tilewright.isa.machine import preset
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence

_ACTIVATIONS = ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", "HardSigmoid", "LeakyRelu", "Elu")
_COUNTS = {"RNN": 1, "GRU": 2, "LSTM": 3}
_TOLERANCE = 5e-6
"""Of floats that two orders of the same sums make, per step."""


def random_recurrence(rng: np.random.Generator) -> onnx.ModelProto:
    """Return a model of one recurrent node, in any form that ONNX Runtime computes."""
    op = str(rng.choice(["RNN", "GRU", "GRU", "LSTM", "LSTM"]))
    way = str(rng.choice(["forward", "forward", "reverse", "bidirectional"]))
    steps, batch, inputs, units = (int(rng.integers(1, most)) for most in (6, 3, 20, 34))
    attributes: dict[str, object] = {"direction": way}
    if rng.random() < 0.3:
        names = [str(name) for name in rng.choice(_ACTIVATIONS, _COUNTS[op])]
        attributes["activations"] = names * (2 if way == "bidirectional" else 1)
    if op == "GRU":
        attributes["linear_before_reset"] = int(rng.random() < 0.5)
    if op == "LSTM":
        attributes["input_forget"] = int(rng.random() < 0.2)
    if rng.random() < 0.2:
        attributes["clip"] = float(rng.uniform(0.1, 2))
    outputs = tuple(name for name in ("y", "hn", "cn") if rng.random() < 0.6) or ("y",)
    if op != "LSTM" and outputs == ("cn",):
        outputs = ("hn",)
    return recurrent_model(
        op, sizes=(steps, batch, inputs, units), states=str(rng.choice(["none", "inputs", "constants"])),
        bias=rng.random() < 0.8, lengths=(steps,) * batch if rng.random() < 0.2 else None,
        peepholes=op == "LSTM" and rng.random() < 0.2, opset=int(rng.choice([14, 18, 21])), outputs=outputs,
        attributes=attributes)


def differing_floats(model: onnx.ModelProto, rng: np.random.Generator) -> list[str]:
    """Return sentences on outputs of the unrolled model that are not those of ONNX Runtime's node."""
    steps = unrolled(read_model(model.SerializeToString()))[0]
    feeds = {value.name: rng.normal(size=[each.dim_value for each in value.type.tensor_type.shape.dim])
             .astype(np.float32) for value in model.graph.input}
    ours, theirs = (onnxruntime.InferenceSession(each.SerializeToString(), providers=["CPUExecutionProvider"])
                    .run(None, feeds) for each in (steps, model))
    return [f"output {value.name}: {np.abs(a - b).max():.2g} off" for value, a, b in
            zip(model.graph.output, ours, theirs, strict=True)
            if a.shape != b.shape or np.abs(a - b).max(initial=0) > 5 * _TOLERANCE * max(1, np.abs(b).max(initial=0))]


def run_one(seed: int, number: int) -> Verdict:
    """Judge recurrence ``number`` of ``seed``."""
    rng = np.random.default_rng((seed, number))
    model, machine = random_recurrence(rng), preset("nano" if number % 4 == 3 else "base")
    wrong = differing_floats(model, rng)
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TILEWRIGHT_CACHE=folder):
        path = Path(folder, "net.onnx")
        onnx.save(model, path)
        quantised = find_model(str(path), Silence()).path.read_bytes()
        verdict, _ = judge(quantised, seed=number, engine="fast", machine=machine)
    verdict.mismatches = [f"recurrence {number} ({machine.name}): {each}" for each in (*wrong, *verdict.mismatches)]
    return verdict


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.recurrent_graphs")
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    total = Verdict()
    for number in range(given.first, given.first + given.graphs):
        found = run_one(given.seed, number)
        for text in found.mismatches:
            print(text, file=sys.stderr, flush=True)
        total.add(found)
        if sys.stderr.isatty():
            print(f"\r{number}", end="", file=sys.stderr)
    print(f"{total.graphs} recurrences, {sum(total.refused.values())} refused, {total.exact:,} integers equal to ONNX "
          f"Runtime's, {total.loose:,} that may be a level off, {total.off:,} that are; "
          f"{len(total.mismatches)} mismatches")
    print("\n".join(f"refused {count} times: {text}" for text, count in total.refused.most_common(5)))
    return 1 if total.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
