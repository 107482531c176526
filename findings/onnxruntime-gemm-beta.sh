#!/usr/bin/env bash
# ONNX Runtime's quantiser loses the beta and the alpha of a Gemm from its bias: of a quarter it makes a whole, or four.
#
# Surprise: y = x · w + beta · b with beta 0.25. quantize_static divides the bias by a scale that holds beta, whose
# DequantizeLinear gives b again, and sets the attribute to 1: unfused the file adds b. A default session makes a QGemm of it
# that takes the bias's levels for steps of input scale · weight scale, and adds 4 b: sixteen times too much. Made in the
# QOperator format the same model adds 4 b at once. There alpha is lost too: with alpha 0.5 the products are halved, as they
# should be, and the bias with them.
# Why one guesses wrong: the quantiser reads beta and handles it, Gemm is on its list, nothing is said, and for the 1 that most
# exporters write (and for beta 0, which is read as "no bias") all is right. In QDQ alpha alone is right as well.
# Who meets it: exports of torch.addmm with a beta of its own, and networks whose scaling was folded into a Gemm.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/beta.py" <<'PYTHON'
import logging
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

logging.disable(logging.WARNING)
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(-1, 1, (16, 8)).astype(np.float32)
BIAS = np.ones(8, np.float32)
SAMPLES = RNG.uniform(-4, 4, (8, 4, 16)).astype(np.float32)


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": sample} for sample in SAMPLES]

    def get_next(self):
        return self.left.pop() if self.left else None


def write(alpha, beta):
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], "gemm", alpha=alpha, beta=beta)
    graph = helper.make_graph(
        [node], "gemm", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 16))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 8))],
        [numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(BIAS, "b")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    onnx.save(made, "float.onnx")


def of_zeros(file, level):
    """The result for an x of zeros, which is what is added to the products."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return float(session.run(None, {"x": np.zeros((4, 16), np.float32)})[0].mean())


levels = onnxruntime.GraphOptimizationLevel
WANTED = {(1, 1): (1, 1, 1, 1), (1, .25): (.25, 1, 4, 4), (1, 2): (2, 1, .5, .5), (.5, 1): (1, 1, 1, .5)}
"""By alpha and beta: the bias of 1 that is added in float; of QDQ unfused and by default; and of QOperator."""
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
changed = False
for (alpha, beta), wanted in WANTED.items():
    write(float(alpha), float(beta))
    quantize_static("float.onnx", "qdq.onnx", Samples(), quant_format=QuantFormat.QDQ)
    quantize_static("float.onnx", "operators.onnx", Samples(), quant_format=QuantFormat.QOperator)
    found = (of_zeros("float.onnx", levels.ORT_DISABLE_ALL), of_zeros("qdq.onnx", levels.ORT_DISABLE_ALL),
             of_zeros("qdq.onnx", levels.ORT_ENABLE_ALL), of_zeros("operators.onnx", levels.ORT_ENABLE_ALL))
    print("alpha %g, beta %g, bias 1: float adds %.2f; QDQ unfused %.2f, by default %.2f; QOperator %.2f"
          % (alpha, beta, *found))
    if not np.allclose(found, wanted, atol=.15):
        print("CHANGED: expected were", wanted)
        changed = True
if changed:
    sys.exit(1)
PYTHON
cd "$folder"
"$folder/venv/bin/python" beta.py
echo "as described: beta and alpha are lost from the bias"
