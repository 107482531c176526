#!/usr/bin/env bash
# torch's newer exporter keeps the Dropout of a network that nobody has called eval() on; the older one leaves it out.
#
# Surprise: a new module is in training mode. torch.onnx.export of the older exporter switches it to evaluation while it exports,
# as its argument training says, and the file has no Dropout. With dynamo=True, the default now, the same call writes a Dropout that
# drops half of the values at each run. BatchNormalization is that of evaluation in both, so that a network without Dropout gives no
# hint. The argument training=TrainingMode.EVAL, its default, is taken and changes nothing. A UserWarning says that the model is in
# training mode.
# Why one guesses wrong: it is one function, whose argument says that evaluation is the default, and the first sign is a network
# whose accuracy is worse, and differs from run to run.
# Who meets it: scripts that relied on the older exporter's mode.
# Versions: torch 2.13.0, onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 \
    onnxruntime==1.32.0 numpy==2.4.6
cat > "$folder/mode.py" <<'PYTHON'
import logging
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import torch

logging.disable(logging.ERROR)
warnings.simplefilter("ignore")
torch.manual_seed(0)
NETWORK = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 1), torch.nn.BatchNorm2d(8), torch.nn.Dropout(0.5))
IMAGE = torch.rand(1, 3, 8, 8)
CASES = {"older, training": (False, True, {}, False), "newer, training": (True, True, {}, True),
         "newer, told to evaluate": (True, True, {"training": torch.onnx.TrainingMode.EVAL}, True),
         "newer, evaluation": (True, False, {}, False)}
"""By name: whether dynamo exports, the network's mode, further arguments, and whether the file drops values."""

print("torch", torch.__version__, "onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
wanted = NETWORK.eval()(IMAGE).detach().numpy()
changed = False
for name, (dynamo, training, more, drops) in CASES.items():
    NETWORK.train(training)
    torch.onnx.export(NETWORK, (IMAGE,), "net.onnx", dynamo=dynamo, opset_version=18, input_names=["x"], **more,
                      **({"verbose": False} if dynamo else {}))
    operators = [node.op_type for node in onnx.load("net.onnx").graph.node]
    session = onnxruntime.InferenceSession("net.onnx", providers=["CPUExecutionProvider"])
    results = [session.run(None, {"x": IMAGE.numpy()})[0] for _ in range(2)]
    off = max(float(np.abs(each - wanted).max()) for each in results)
    print(f"{name}: {', '.join(operators)}; up to {off:.2g} off evaluation, two runs "
          f"{'equal' if np.array_equal(*results) else 'differ'}")
    if ("Dropout" in operators, off > 0.1) != (drops, drops) or "BatchNormalization" in operators:
        print("CHANGED: expected was", "a Dropout" if drops else "no Dropout")
        changed = True
if changed:
    sys.exit(1)
PYTHON
cd "$folder"
"$folder/venv/bin/python" mode.py
echo "as described: the newer exporter drops values unless the network was put into evaluation"
