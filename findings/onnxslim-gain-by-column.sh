#!/usr/bin/env bash
# onnxslim takes a factor for each column for a factor for each channel, if an image has as many columns as channels.
#
# Surprise: a Conv of 16 channels whose result is 16 wide is multiplied by a vector of 16 numbers. ONNX broadcasts it along the
# last axis: a gain for each column, as for each band of a spectrum. onnxslim looks at the count of its numbers alone, multiplies
# the weights of each channel by one of them, and drops the Mul: nearly all results differ. A gain for each row, of shape (16, 1),
# fares alike, and so does a ConvTranspose. With 12 columns the same graph is left alone, and so is an Add, whose axis is checked.
# Why one guesses wrong: the same network is right at other sizes of the image, and onnxslim is asked for nothing but to simplify;
# it has a check of its results (model_check), which is off by default.
# Who meets it: networks on spectra (speech, keywords), which often have 64 channels and 64 bands.
# Versions: onnxslim 0.1.98, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxslim==0.1.98 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cat > "$folder/gain.py" <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import onnxslim
from onnx import TensorProto, helper, numpy_helper

CHANNELS = 16
random = np.random.default_rng(0)
CASES = {
    "16 columns, a gain for each": ("Conv", "Mul", 16, (16,), True),
    "16 columns, shape (1, 1, 1, 16)": ("Conv", "Mul", 16, (1, 1, 1, 16), True),
    "16 rows, a gain for each": ("Conv", "Mul", 16, (16, 1), True),
    "ConvTranspose, 16 columns": ("ConvTranspose", "Mul", 16, (16,), True),
    "12 columns, a gain for each": ("Conv", "Mul", 12, (12,), False),
    "16 channels, a gain for each": ("Conv", "Mul", 16, (16, 1, 1), False),
    "16 columns, an offset for each": ("Conv", "Add", 16, (16,), False)}
"""By name: the layer, what follows it, the size of the image, the shape of the constant, and whether results change."""


def model(layer, after, size, shape):
    weights = random.normal(size=(CHANNELS, CHANNELS, 1, 1)).astype(np.float32)
    image = [1, CHANNELS, size, size]
    graph = helper.make_graph(
        [helper.make_node(layer, ["x", "w"], ["a"]), helper.make_node(after, ["a", "k"], ["y"])], "gain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, image)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, image)],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(random.uniform(1, 9, shape).astype(np.float32), "k")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made, random.normal(size=image).astype(np.float32)


def result(made, image):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": image})[0]


print({name: version(name) for name in ("onnxslim", "onnx", "onnxruntime", "numpy")})
wrong = []
for name, (*how, changes) in CASES.items():
    made, image = model(*how)
    before = result(made, image)
    slimmed = onnxslim.slim(made)
    different = float((np.abs(result(slimmed, image) - before) > 1e-3).mean())
    print(f"{name:32} {' '.join(node.op_type for node in slimmed.graph.node):14} {different:.0%} of the results differ")
    if (different > .9) != changes or (different == 0) == changes:
        wrong.append(f"{name}: the results {'are kept' if changes else 'differ'}")
if wrong:
    sys.exit("CHANGED: " + "; ".join(wrong))
print("STILL SO: a gain for each column becomes one for each channel where there are as many.")
PYTHON
"$folder/venv/bin/python" "$folder/gain.py" 2> "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
