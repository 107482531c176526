#!/usr/bin/env bash
# QONNX's converter to standard ONNX loses the rounding mode of Quant, and takes a vector of scales for scales of the first axis.
#
# Surprise: QuantToQCDQ replaces Quant by QuantizeLinear, Clip and DequantizeLinear. rounding_mode has to be ROUND for that, it
# says, and there is a test for it that lets all modes pass: FLOOR, CEIL, UP and DOWN are replaced too, and round to nearest
# from then on. Quant broadcasts a scale of shape (4,) over the last axis; the converted model has it on axis 0, so that each
# row of a square weight gets what each column should have. Unsigned narrow bytes end at 254; converted, at 255. Scales that
# are one number, (4, 1) or (1, 4) come out right.
# Why one guesses wrong: the conditions stand in the class's documentation, others are kept (a Quant with a zero point is
# left alone), and the result passes onnx's checker and runs.
# Who meets it: hardware flows that truncate (FLOOR) and check their result in ONNX Runtime.
# Versions: qonnx 1.0.0, onnxscript 0.7.2, onnx-ir 1.1.0, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check qonnx==1.0.0 onnxscript==0.7.2 onnx-ir==1.1.0 \
    onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cat > "$folder/convert.py" <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from qonnx.core.modelwrapper import ModelWrapper
from qonnx.core.onnx_exec import execute_onnx
from qonnx.transformation.qonnx_to_qcdq import QuantToQCDQ

DOMAIN = "qonnx.custom_op.general"
X = (np.arange(16, dtype=np.float32) * 2.3 - 15).reshape(4, 4)
VECTOR = np.array([.125, .25, .5, 1])
CASES = {
    "ROUND": ({}, .5, True), "HALF_EVEN": ({"rounding_mode": "HALF_EVEN"}, .5, True),
    "FLOOR": ({"rounding_mode": "FLOOR"}, .5, False), "CEIL": ({"rounding_mode": "CEIL"}, .5, False),
    "UP": ({"rounding_mode": "UP"}, .5, False), "DOWN": ({"rounding_mode": "DOWN"}, .5, False),
    "scale (4, 1)": ({}, VECTOR[:, None], True), "scale (1, 4)": ({}, VECTOR[None], True), "scale (4,)": ({}, VECTOR, False),
    "unsigned": ({"signed": 0}, .0625, True), "unsigned, narrow": ({"signed": 0, "narrow": 1}, .0625, False)}
"""By name: attributes of Quant, its scale, and whether the converted model has the same values."""


def model(attributes, scale, zero_point=0):
    node = helper.make_node("Quant", ["x", "scale", "zero", "bits"], ["y"], domain=DOMAIN,
                            **{"signed": 1, "narrow": 0, "rounding_mode": "ROUND", **attributes})
    constants = {"scale": scale, "zero": zero_point, "bits": 8}
    graph = helper.make_graph(
        [node], "quant", [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, X.shape)],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid(DOMAIN, 1)]
    return ModelWrapper(helper.make_model(graph, opset_imports=opsets, ir_version=8))


def operators(wrapped):
    return [node.op_type for node in wrapped.graph.node if node.op_type != "Constant"]


print({name: version(name) for name in ("qonnx", "onnxscript", "onnx-ir", "onnx", "onnxruntime", "numpy")})
changed = False
for name, (attributes, scale, same) in CASES.items():
    before = model(attributes, scale)
    wanted = execute_onnx(before, {"x": X})["y"]
    after = before.transform(QuantToQCDQ())
    onnx.checker.check_model(after.model, full_check=True)
    session = onnxruntime.InferenceSession(after.model.SerializeToString(), providers=["CPUExecutionProvider"])
    different = int((np.abs(session.run(None, {"x": X})[0] - wanted) > 1e-5).sum())
    print(f"{name}: {' '.join(operators(after))}; {different} of {X.size} values differ")
    if (different == 0) != same:
        print("CHANGED: the contrary was expected")
        changed = True
    if "Quant" in operators(after):
        print("CHANGED: Quant is left alone")
        changed = True
if operators(model({}, .5, zero_point=3).transform(QuantToQCDQ())) != ["Quant"]:
    print("CHANGED: a Quant with a zero point is converted")
    changed = True
if changed:
    sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/convert.py" 2>/dev/null
echo "as described: rounding mode, axis and narrow bytes are lost"
