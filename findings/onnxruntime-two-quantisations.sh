#!/usr/bin/env bash
# ONNX Runtime makes one quantisation of two in a row, with a scale that the file does not have.
#
# Surprise: QuantizeLinear -> DequantizeLinear twice, with two scales, as it stands where the layer that makes a tensor and the
# one that reads it each have their own. The default session keeps one pair, and gives it the range that both have in common,
# in 255 steps of its own. For uint8, 0.02 with zero point 3 and then 0.02 with zero point 50 that is 0.0163: of 701 values
# 700 are on neither grid of the file, and a layer behind it multiplies by another scale. With 0.05 and then 0.02, of one zero
# point, values are rounded once for twice. The setting session.disable_double_qdq_remover gives the file's values back.
# Why one guesses wrong: what is left are the same operators with the same types; two quantisations are two roundings that the
# file asks for; and a scale is the last thing that an optimisation is expected to choose.
# Who meets it: joints of parts that were quantised separately, and devices that are compared with a session.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/twice.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

VALUES = np.linspace(-1, 6, 701, dtype=np.float32)
PAIRS = {((.02, 3), (.02, 3)): False, ((.02, 3), (.02, 50)): True, ((.05, 0), (.02, 0)): True}
"""Two scales with zero points, of uint8; and whether the default session changes values."""


def model(pairs):
    nodes, constants, given = [], [], "x"
    for i, (scale, zero_point) in enumerate(pairs):
        made = "y" if i else "between"
        nodes += [helper.make_node("QuantizeLinear", [given, f"s{i}", f"z{i}"], [f"q{i}"]),
                  helper.make_node("DequantizeLinear", [f"q{i}", f"s{i}", f"z{i}"], [made])]
        constants += [numpy_helper.from_array(np.asarray(np.float32(scale)), f"s{i}"),
                      numpy_helper.from_array(np.asarray(np.uint8(zero_point)), f"z{i}")]
        given = made
    graph = helper.make_graph(nodes, "twice", [helper.make_tensor_value_info("x", TensorProto.FLOAT, VALUES.shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, VALUES.shape)], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def run(made, **settings):
    """The values of a default session, and the scales in what it makes of the model."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath, options.log_severity_level = "optimised.onnx", 4
    for name, value in settings.items():
        options.add_session_config_entry(f"session.{name}", value)
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = session.run(None, {"x": VALUES})[0]
    graph = onnx.load("optimised.onnx").graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    return values, [round(float(arrays[node.input[1]]), 5) for node in graph.node]


def off_grid(values, scale):
    steps = values.astype(np.float64) / scale
    return int((np.abs(steps - np.rint(steps)) > 1e-3).sum())


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
changed = False
for pairs, differs in PAIRS.items():
    made = model(pairs)
    standard = ReferenceEvaluator(made).run(None, {"x": VALUES})[0]
    values, scales = run(made)
    kept, _ = run(made, disable_double_qdq_remover="1")
    different = int((np.abs(values - standard) > 1e-5).sum())
    print(f"scale and zero point {pairs[0]}, then {pairs[1]}: the session's scales are {scales}; {different} of {VALUES.size} "
          f"values differ from the file's, by up to {np.abs(values - standard).max():.4f}; "
          f"{off_grid(values, pairs[1][0])} are no multiples of the last scale")
    if (different > 50) != differs:
        print("CHANGED: the contrary was expected")
        changed = True
    if not np.allclose(kept, standard, atol=1e-5):
        print("CHANGED: the setting does not give the file's values")
        changed = True
    if pairs[0] == (.02, 3) and differs and (set(scales) & {.02} or off_grid(values, .02) < 300):
        print("CHANGED: the session's scale was expected to be none of the file's")
        changed = True
if changed:
    sys.exit(1)
PYTHON
cd "$folder"
"$folder/venv/bin/python" twice.py
echo "as described: two quantisations become one with a scale of its own"
