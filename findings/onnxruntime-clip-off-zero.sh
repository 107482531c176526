#!/usr/bin/env bash
# ONNX Runtime's quantiser deletes a Clip whose bounds do not hold zero, and values that it kept out come through.
#
# Surprise: quantize_static takes a Clip behind a quantised layer away, since the layer's levels end at the Clip's bounds. But
# levels always hold zero: the range of Clip(0.5, 6) is widened to 0 to 6, that of Clip(-6, -1) to -6 to 0, and what lies
# between the bound and zero is no longer cut off. A reciprocal or a division that the Clip kept from zero becomes infinite.
# For Clip(0, 6) and Clip(-1, 1) nothing changes. The extra option QDQKeepRemovableActivations keeps the Clip.
# Why one guesses wrong: for ReLU6 and its like it is right, and the option's name says that only what can be removed is; the
# calibrated range (0.5 to 6) is right too, and widened afterwards.
# Who meets it: Clip(eps, max) in front of a division, square root or logarithm, clamped gates and heights.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/clip.py" <<'PYTHON'
import logging
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, quantize_static

logging.disable(logging.WARNING)
RNG = np.random.default_rng(0)
SHAPE = (1, 8, 8, 8)
SAMPLES = RNG.standard_normal((8, *SHAPE)).astype(np.float32)
WEIGHTS = (RNG.standard_normal((8, 8, 1, 1)) * .9).astype(np.float32)
LOST = {(.5, 6), (-6, -1)}
KEEP = {"QDQKeepRemovableActivations": True}


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": sample} for sample in SAMPLES]

    def get_next(self):
        return self.left.pop() if self.left else None


def write(low, high):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Clip", ["c", "low", "high"], ["kept"]),
        helper.make_node("Reciprocal", ["kept"], ["y"])]
    constants = {"w": WEIGHTS, "low": np.asarray(np.float32(low)), "high": np.asarray(np.float32(high))}
    graph = helper.make_graph(
        nodes, "clip", [helper.make_tensor_value_info("x", TensorProto.FLOAT, SHAPE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, SHAPE)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, "float.onnx")


def greatest(file):
    """The greatest magnitude of all reciprocals."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return max(float(np.abs(session.run(None, {"x": sample})[0]).max()) for sample in SAMPLES)


def has_clip(file):
    return any(node.op_type == "Clip" for node in onnx.load(file).graph.node)


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
changed = False
for bounds in ((0, 6), (-1, 1), (.5, 6), (-6, -1)):
    write(*bounds)
    quantize_static("float.onnx", "default.onnx", Samples())
    quantize_static("float.onnx", "keeping.onnx", Samples(), extra_options=KEEP)
    found = [greatest(file) for file in ("float.onnx", "default.onnx", "keeping.onnx")]
    print(f"Clip{bounds}: Clip is {'there' if has_clip('default.onnx') else 'deleted'}; greatest 1/x: "
          "float %.3g, quantised %.3g, with the option %.3g" % tuple(found))
    if has_clip("default.onnx"):
        print("CHANGED: the Clip is kept")
        changed = True
    if not has_clip("keeping.onnx"):
        print("CHANGED: the option does not keep the Clip")
        changed = True
    if bounds in LOST and not (found[0] < 2.01 and np.isinf(found[1]) and found[2] < 2.1):
        print("CHANGED: an infinite reciprocal was expected of the quantised model alone")
        changed = True
if changed:
    sys.exit(1)
PYTHON
cd "$folder"
"$folder/venv/bin/python" clip.py 2>/dev/null
echo "as described: a Clip whose bounds do not hold zero is deleted"
