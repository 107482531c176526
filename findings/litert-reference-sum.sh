#!/usr/bin/env bash
# LiteRT's reference kernel of SUM reads int8 as uint8: each negative element counts for 256 more.
#
# Surprise: BUILTIN_REF is the resolver to hold other kernels to. Its int8 SUM adds the bytes as unsigned numbers and writes an
# unsigned byte: of 64 elements whose average is near 0 it makes some 120. MEAN, the largest and the smallest of the same bytes
# are right in it; the default session, LiteRT without delegates and TensorFlow Lite Micro have the right sum to a level.
# Why one guesses wrong: rows without negative elements are right, so are rows of zeros; the error is no saturation and no
# rounding, and looks like the device's fault whenever the reference is taken for the truth.
# Versions: ai-edge-litert 2.3.0, tflite-micro 0.dev20261023182759, flatbuffers 25.12.19, numpy 2.4.6; x86-64.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check ai-edge-litert==2.3.0 \
    tflite-micro==0.dev20261023182759 flatbuffers==25.12.19 numpy==2.4.6
cat > "$folder/sum.py" <<'PYTHON'
import sys

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from tflite_micro import runtime

RNG = np.random.default_rng(0)
ROWS, COLUMNS = 16, 64
SCALE = .05
"""Of the input; that of the sum is COLUMNS times as large, so that levels of the result are averages of levels."""


def tensor(name, shape, kind, scale, buffer):
    made = schema.TensorT()
    made.name, made.shape, made.type, made.buffer = name.encode(), list(shape), kind, buffer
    if scale:
        made.quantization = schema.QuantizationParametersT()
        made.quantization.scale, made.quantization.zeroPoint = [scale], [0]
    return made


def network(operator, scale):
    """A .tflite of one reduction: y (ROWS, 1) of x (ROWS, COLUMNS), both int8 with zero point 0."""
    model, graph, code, node = schema.ModelT(), schema.SubGraphT(), schema.OperatorCodeT(), schema.OperatorT()
    buffers = [schema.BufferT(), schema.BufferT()]
    buffers[1].data = np.array([1], np.int32).view(np.uint8)
    code.builtinCode = code.deprecatedBuiltinCode = getattr(schema.BuiltinOperator, operator)
    code.version = 2
    int8 = schema.TensorType.INT8
    graph.tensors = [tensor("x", (ROWS, COLUMNS), int8, SCALE, 0), tensor("axis", (1,), schema.TensorType.INT32, None, 1),
                     tensor("y", (ROWS, 1), int8, scale, 0)]
    graph.inputs, graph.outputs, graph.operators = [0], [2], [node]
    node.opcodeIndex, node.inputs, node.outputs = 0, [0, 1], [2]
    node.builtinOptionsType = schema.BuiltinOptions.ReducerOptions
    node.builtinOptions = schema.ReducerOptionsT()
    node.builtinOptions.keepDims = True
    model.version, model.buffers, model.operatorCodes, model.subgraphs = 3, buffers, [code], [graph]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def litert(file, x, resolver):
    session = Interpreter(model_content=file, experimental_op_resolver_type=resolver)
    session.allocate_tensors()
    session.set_tensor(session.get_input_details()[0]["index"], x)
    session.invoke()
    return session.get_tensor(session.get_output_details()[0]["index"]).ravel()


def micro(file, x):
    session = runtime.Interpreter.from_bytes(file)
    session.set_input(x, 0)
    session.invoke()
    return session.get_output(0).ravel()


def distance(one, other):
    return int(np.abs(one.astype(int) - np.rint(other)).max())


mixed = RNG.integers(-128, 128, (ROWS, COLUMNS)).astype(np.int8)
positive = RNG.integers(0, 128, (ROWS, COLUMNS)).astype(np.int8)
total = network("SUM", SCALE * COLUMNS)
checks = {}
for name, x in (("mixed", mixed), ("not negative", positive)):
    exact, unsigned = x.mean(1), x.view(np.uint8).mean(1)
    reference = litert(total, x, OpResolverType.BUILTIN_REF)
    answers = {"default": litert(total, x, OpResolverType.AUTO), "micro": micro(total, x),
               "no delegates": litert(total, x, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)}
    print(f"elements {name}: exact {np.rint(exact[:6]).astype(int).tolist()}, reference {reference[:6].tolist()},",
          {other: answer[:6].tolist() for other, answer in answers.items()})
    for other, answer in answers.items():
        checks[f"{name}: {other} is right to a level"] = distance(answer, exact) <= 1
    as_bytes = distance(reference.view(np.uint8), unsigned)
    checks[f"{name}: the reference is the sum of unsigned bytes to a level"] = as_bytes <= 1
    checks[f"{name}: the reference is {'wrong' if name == 'mixed' else 'right'}"] = (
        (distance(reference, exact) > 50) == (name == "mixed"))
mean = litert(network("MEAN", SCALE), mixed, OpResolverType.BUILTIN_REF)
checks["the reference's MEAN of mixed elements is right to a level"] = distance(mean, mixed.mean(1)) <= 1
for text, holds in checks.items():
    print("as before:" if holds else "CHANGED:  ", text)
sys.exit(0 if all(checks.values()) else 1)
PYTHON
"$folder/venv/bin/pip" list 2>/dev/null | grep -iE '^(ai-edge-litert|tflite.micro|flatbuffers|numpy) '
"$folder/venv/bin/python" "$folder/sum.py" 2>/dev/null
