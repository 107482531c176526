#!/usr/bin/env bash
# Brevitas' export to standard ONNX loses the rounding of activations: a network trained with FLOOR rounds to nearest from then on.
#
# Surprise: float_to_int_impl_type chooses how a quantiser rounds: ROUND, FLOOR, CEIL, ROUND_TO_ZERO. export_onnx_qcdq writes
# QuantizeLinear for each of them, which rounds to nearest, and says nothing. Of evenly spread values nearly half come out one
# level higher than FLOOR's, so that each activation is half a level above what the network was trained with. A TruncAvgPool2d,
# which cuts the bits of its sum off, has the same lot, and differs a little even if it was to round. Weights come out right, since
# the export computes their levels itself, and ROUND does; export_qonnx writes the mode into its Quant.
# Why one guesses wrong: binary weights, which the form cannot hold, are refused with a message; the exported file passes the
# checker, runs, and is never off by more than a level of the activation, as rounding errors are.
# Who meets it: whoever trains for hardware that truncates, and checks its result against ONNX Runtime.
# Versions: brevitas 0.13.4, torch 2.13.0, onnxoptimizer 0.4.2, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check brevitas==0.13.4 torch==2.13.0 onnxoptimizer==0.4.2 onnx==1.23.2 \
    onnxscript==0.7.2 onnxruntime==1.32.0 numpy==2.4.6
cat > "$folder/rounding.py" <<'PYTHON'
import logging
import sys
import warnings
from importlib.metadata import version

import numpy as np
import onnx
import onnxruntime
import torch
from brevitas import nn
from brevitas.export import export_onnx_qcdq, export_qonnx

logging.disable(logging.ERROR)
warnings.simplefilter("ignore")
FILE = f"{sys.argv[1]}/exported.onnx"
MODES = ("ROUND", "FLOOR", "CEIL", "ROUND_TO_ZERO")
torch.manual_seed(0)
SPREAD = torch.linspace(-2, 2, 1024).reshape(1, 4, 16, 16)


def activation(mode):
    return nn.QuantIdentity(bit_width=4, float_to_int_impl_type=mode, return_quant_tensor=False)


def weights(mode):
    return nn.QuantConv2d(4, 8, 3, weight_bit_width=4, weight_float_to_int_impl_type=mode)


def pool(mode):
    truncated = nn.TruncAvgPool2d(2, bit_width=8, float_to_int_impl_type=mode)
    return torch.nn.Sequential(nn.QuantReLU(return_quant_tensor=True), truncated)


def compared(network):
    """Return the share of results that ONNX Runtime gives otherwise, and how far they are off on average."""
    network.train()
    network(SPREAD)
    network.eval()
    with torch.no_grad():
        wanted = network(SPREAD)
    wanted = getattr(wanted, "value", wanted).numpy()
    export_onnx_qcdq(network, args=SPREAD, export_path=FILE, opset_version=17, dynamo=False)
    onnx.checker.check_model(FILE, full_check=True)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(FILE, options, providers=["CPUExecutionProvider"])
    apart = session.run(None, {session.get_inputs()[0].name: SPREAD.numpy()})[0] - wanted
    return float((np.abs(apart) > 1e-5).mean()), float(apart.mean())


def written(network):
    """Return the rounding mode of the Quant that export_qonnx writes."""
    network.eval()
    export_qonnx(network, args=SPREAD, export_path=FILE, dynamo=False)
    (quant,) = [node for node in onnx.load(FILE).graph.node if node.op_type == "Quant"]
    (mode,) = [each.s.decode() for each in quant.attribute if each.name == "rounding_mode"]
    return mode


print({name: version(name) for name in ("brevitas", "torch", "onnxoptimizer", "onnx", "onnxruntime", "numpy")})
wrong = []
for mode in MODES:
    (share, mean), (of_weights, _), (pooled, _) = (compared(made(mode)) for made in (activation, weights, pool))
    in_qonnx = written(activation(mode))
    print(f"{mode:14} activation: {share:.0%} differ, by {mean:+.3f} on average; weights: {of_weights:.0%}; "
          f"TruncAvgPool2d: {pooled:.0%}; in QONNX: {in_qonnx}")
    if (share > .4) != (mode != "ROUND") or (share == 0) != (mode == "ROUND"):
        wrong.append(f"{mode}: activations {'differ' if mode == 'ROUND' else 'are as they were trained'}")
    if of_weights:
        wrong.append(f"{mode}: weights differ")
    if (pooled > .05) != (mode != "ROUND"):
        wrong.append(f"{mode}: the pool {'differs' if mode == 'ROUND' else 'is as it was trained'}")
    if in_qonnx != mode:
        wrong.append(f"{mode}: QONNX has {in_qonnx}")
if wrong:
    sys.exit("CHANGED: " + "; ".join(wrong))
print("STILL SO: the export to standard ONNX rounds activations to nearest, whatever the network does.")
PYTHON
"$folder/venv/bin/python" "$folder/rounding.py" "$folder" 2> "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
