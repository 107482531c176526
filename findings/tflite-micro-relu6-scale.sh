#!/usr/bin/env bash
# TensorFlow Lite Micro's int8 RELU6 ignores the scale of its result, so that a scale of its own makes nearly all elements wrong.
#
# Surprise: a RELU6 by itself, not fused into a layer, has two scales: the input's, of a range with negative values, and the
# result's, of 0 to 6. TensorFlow Lite Micro clips the input's levels between those of 0 and 6 and hands them on as they are,
# as if they were the result's: 254 of 256 levels are wrong, by up to 128. LiteRT scales, in all its kernels, and so does
# Micro's own RELU.
# Why one guesses wrong: the desktop runs the same file right, RELU is right on the device, nothing is refused when the model
# is prepared, and with equal scales RELU6 is right as well.
# Who meets it: networks on microcontrollers in which a RELU6 does not follow the layer that it could be fused into.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759, flatbuffers 25.12.19, numpy 2.4.6; x86-64.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check ai-edge-litert==2.3.0 \
    tflite-micro==0.dev20261023182759 flatbuffers==25.12.19 numpy==2.4.6
cat > "$folder/relu.py" <<'PYTHON'
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tflite_micro import runtime

LEVELS = np.arange(-128, 128, dtype=np.int8)[None]
GIVEN = .0625, 0
"""Scale and zero point of the input: -8 to 8."""

CASES = {("RELU6", .0625, 0): True, ("RELU6", 6 / 255, -128): False, ("RELU6", .03125, 0): False,
         ("RELU", 8 / 255, -128): True}
"""By operator, scale and zero point of the result: whether TensorFlow Lite Micro is right to a level."""


def tensor(name, scale, zero_point):
    made = schema.TensorT()
    made.name, made.shape, made.type, made.buffer = name.encode(), list(LEVELS.shape), schema.TensorType.INT8, 0
    made.quantization = schema.QuantizationParametersT()
    made.quantization.scale, made.quantization.zeroPoint = [scale], [zero_point]
    return made


def network(operator, scale, zero_point):
    model, graph, code, node = schema.ModelT(), schema.SubGraphT(), schema.OperatorCodeT(), schema.OperatorT()
    code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, operator)
    code.version = 2
    graph.tensors = [tensor("x", *GIVEN), tensor("y", scale, zero_point)]
    graph.inputs, graph.outputs, graph.operators = [0], [1], [node]
    node.opcodeIndex, node.inputs, node.outputs = 0, [0], [1]
    model.version, model.buffers, model.operatorCodes, model.subgraphs = 3, [schema.BufferT()], [code], [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def litert(file, resolver):
    session = Interpreter(model_content=file, experimental_op_resolver_type=resolver)
    session.allocate_tensors()
    session.set_tensor(session.get_input_details()[0]["index"], LEVELS)
    session.invoke()
    return session.get_tensor(session.get_output_details()[0]["index"]).astype(int)


def micro(file):
    session = runtime.Interpreter.from_bytes(file)
    session.set_input(LEVELS, 0)
    session.invoke()
    return session.get_output(0).astype(int)


def exact(operator, scale, zero_point):
    values = np.maximum((LEVELS.astype(float) - GIVEN[1]) * GIVEN[0], 0)
    if operator == "RELU6":
        values = np.minimum(values, 6)
    return np.clip(np.rint(values / scale + zero_point), -128, 127)


changed = False
for (operator, scale, zero_point), right in CASES.items():
    file, wanted = network(operator, scale, zero_point), exact(operator, scale, zero_point)
    answers = {"default": litert(file, OpResolverType.AUTO), "reference": litert(file, OpResolverType.BUILTIN_REF),
               "no delegates": litert(file, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES), "micro": micro(file)}
    away = {name: int(np.abs(answer - wanted).max()) for name, answer in answers.items()}
    wrong = int((np.abs(answers["micro"] - wanted) > 1).sum())
    print(f"{operator}, scale {GIVEN[0]} to {scale:.5f}, zero point {GIVEN[1]} to {zero_point}: "
          f"furthest from exact in levels {away}; micro is wrong in {wrong} of {wanted.size}")
    if max(away[name] for name in ("default", "reference", "no delegates")) > 1:
        print("CHANGED: LiteRT is off by more than a level")
        changed = True
    if (wrong == 0) != right:
        print("CHANGED: of TensorFlow Lite Micro the contrary was expected")
        changed = True
if changed:
    sys.exit(1)
PYTHON
"$folder/venv/bin/pip" list 2>/dev/null | grep -iE '^(ai-edge-litert|tflite.micro|flatbuffers|numpy) '
"$folder/venv/bin/python" "$folder/relu.py" 2>/dev/null
echo "as described: RELU6 of another scale is not scaled"
