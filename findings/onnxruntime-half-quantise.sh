#!/usr/bin/env bash
# The same QuantizeLinear of float16 gives other levels when only the model's opset is raised.
#
# Surprise: ONNX Runtime divides float16 by its float16 scale in float32 up to opset 22, and in float16 from opset 23 on,
# where the standard first says which precision the division has. Of all finite float16 values 122 have another level at
# scale 0.02; QDQ files of half precision models meet them at ties. Attribute precision=1 (FLOAT) of opset 23 brings the
# old levels back. onnx.reference divides in float16 at every opset, and there a quotient beyond float16 becomes level 0
# (or the zero point's neighbour) where it should saturate: 5,857 of the values.
# Why one guesses wrong: an opset converter is expected to keep values; the operator's text was only made more precise; and
# saturation is the one thing that QuantizeLinear promises for large values.
# Who meets it: float16 exports that are quantised (torch, onnxconverter-common) and then converted to opset 23 or later,
# and tests that hold a device to onnx.reference.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/half.py" <<'PYTHON'
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

SCALE, ZERO = np.float16(.02), 128
finite = np.arange(0x7C00, dtype=np.uint16).view(np.float16)
VALUES = np.concatenate([finite, -finite])
warnings.simplefilter("ignore", RuntimeWarning)


def model(opset, **attributes):
    graph = helper.make_graph(
        [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], **attributes)], "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, VALUES.shape)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, VALUES.shape)],
        [numpy_helper.from_array(np.asarray(SCALE), "s"), numpy_helper.from_array(np.asarray(ZERO, np.uint8), "z")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)
    onnx.checker.check_model(made, full_check=True)
    return made


def levels(quotient):
    return np.clip(np.rint(quotient.astype(np.float32)) + ZERO, 0, 255).astype(np.uint8)


def runtime(made):
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": VALUES})[0]


single = levels(VALUES.astype(np.float32) / np.float32(SCALE))
half = levels(VALUES / SCALE)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
print(f"{len(VALUES):,} values; divided in float32 and in float16: {int((single != half).sum())} levels differ")
for opset, attributes, expected in ((19, {}, single), (21, {}, single), (23, {}, half), (25, {}, half),
                                    (23, {"precision": TensorProto.FLOAT}, single)):
    made = model(opset, **attributes)
    found, reference = runtime(made), ReferenceEvaluator(made).run(None, {"x": VALUES})[0]
    print(f"opset {opset} {attributes or ''}: ONNX Runtime is off float32's levels in {int((found != single).sum())}, "
          f"off float16's in {int((found != half).sum())}; onnx.reference off float16's in "
          f"{int((reference != half).sum())}")
    if not np.array_equal(found, expected):
        sys.exit("changed: ONNX Runtime divides otherwise")
    if not attributes and not (reference != half).sum() > 5000:
        sys.exit("changed: onnx.reference saturates")
PYTHON
"$folder/venv/bin/python" "$folder/half.py"
echo "as described: levels depend on the opset"
