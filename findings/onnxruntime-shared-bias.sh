#!/usr/bin/env bash
# ONNX Runtime's quantiser copies a bias that two layers share under the name of another tensor of the model.
#
# Surprise: quantize_static gives the second layer a copy of the bias, called by the bias's name and a number, and does not
# look whether a tensor has this name. If the result of a layer has it ("bias0" beside "bias"), the readers of that result
# read the quantised constant instead, and the layer is computed for nobody. Nothing is said while the model is quantised.
# Where the constant's shape fits, as in front of an addition, the model also runs: with other values. With the result
# called otherwise the same model is quantised as one expects.
# Why one guesses wrong: names in a valid ONNX graph are unique, and a tool that adds some is expected to keep them so.
# Who meets it: tf2onnx may call the result of a convolution by its bias and a number, as in a published pitch detector.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/shared.py" <<'PYTHON'
import logging
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

logging.disable(logging.WARNING)
FOLDER = Path(sys.argv[1])
RNG = np.random.default_rng(0)
IMAGES = RNG.standard_normal((4, 1, 4, 8, 8)).astype(np.float32)
CONSTANTS = {"w0": RNG.normal(0, .3, (8, 4, 1, 1)), "w1": RNG.normal(0, .3, (8, 4, 1, 1)),
             "bias": RNG.normal(0, .1, 8), "row": RNG.normal(0, 1, (1, 8, 8, 8))}


def model(second):
    """Two convolutions share a bias; the result of the second is called as told, and is added to a constant."""
    nodes = [helper.make_node("Conv", ["x", "w0", "bias"], ["first"], name="one"),
             helper.make_node("Conv", ["x", "w1", "bias"], [second], name="two"),
             helper.make_node("Add", [second, "row"], ["sum"], name="add"),
             helper.make_node("Concat", ["first", "sum"], ["y"], name="join", axis=1)]
    graph = helper.make_graph(
        nodes, "shared", [helper.make_tensor_value_info("x", TensorProto.FLOAT, IMAGES[0].shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 16, 8, 8])],
        [numpy_helper.from_array(np.asarray(values, np.float32), name) for name, values in CONSTANTS.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = iter(IMAGES)

    def get_next(self):
        image = next(self.left, None)
        return None if image is None else {"x": image}


def run(content):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": IMAGES[0]})[0]


def quantised(second):
    """Return the largest error of either half of the result, and what the addition reads."""
    given, made = FOLDER / "given.onnx", FOLDER / "made.onnx"
    onnx.save(model(second), given)
    quantize_static(given, made, Samples())
    graph = onnx.load(made).graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    read = next(node for node in graph.node if node.op_type == "Add").input[0]
    held = makers[read].input[0]
    error = np.abs(run(str(made)) - run(model(second).SerializeToString()))
    return error[:, :8].max(), error[:, 8:].max(), held in constants


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
found = {}
for name in ("second", "bias0"):
    found[name] = quantised(name)
    print(f"result of the second layer called {name!r}: errors of {found[name][0]:.3f} and {found[name][1]:.3f}; "
          f"the addition reads a {'constant' if found[name][2] else 'computed tensor'}")
checks = {
    "with another name both halves are near": max(found["second"][:2]) < 0.1 and not found["second"][2],
    "with that name the addition reads the bias": found["bias0"][2],
    "the first half is near then, and the second is far": found["bias0"][0] < 0.1 < 0.5 < found["bias0"][1],
}
for name, holds in checks.items():
    print("still so:" if holds else "CHANGED:", name)
sys.exit(0 if all(checks.values()) else 1)
PYTHON
"$folder/venv/bin/python" "$folder/shared.py" "$folder"
