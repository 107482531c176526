#!/usr/bin/env bash
# The package tflite reads an operator's number from the deprecated field of a .tflite file, and takes QUANTIZE for ADD.
#
# Surprise: OperatorCode.BuiltinCode() does not return the field builtin_code. If that is below 127, it returns the other
# field, deprecated_builtin_code, which the schema asks writers to fill too. LiteRT takes the larger of the two, so a file
# that fills the newer field alone runs there. ai-edge-quantizer 0.10 writes such files: the QUANTIZE and DEQUANTIZE that
# it inserts around float regions have 114 and 6 in the newer field and nothing in the older one, and are read as 0, ADD.
# Why one guesses wrong: DeprecatedBuiltinCode() is there as well, so max(old, new) looks like LiteRT's own rule.
# Versions: tflite 2.18.0, flatbuffers 25.12.19, numpy 2.4.6.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check tflite==2.18.0 flatbuffers==25.12.19 numpy==2.4.6
cat > "$folder/codes.py" <<'PYTHON'
import sys

import flatbuffers
import tflite

BUILTIN_CODE = 10


def operator_code(**fields):
    """Return an OperatorCode with these fields, written and read again."""
    builder = flatbuffers.Builder()
    tflite.OperatorCodeStart(builder)
    for name, value in fields.items():
        getattr(tflite, f"OperatorCodeAdd{name}")(builder, value)
    builder.Finish(tflite.OperatorCodeEnd(builder))
    return tflite.OperatorCode.GetRootAs(bytes(builder.Output()), 0)


quantize = tflite.BuiltinOperator.QUANTIZE
alone = operator_code(BuiltinCode=quantize)
table = alone._tab
written = table.Get(flatbuffers.number_types.Int32Flags, table.Offset(BUILTIN_CODE) + table.Pos)
both = operator_code(BuiltinCode=quantize, DeprecatedBuiltinCode=quantize)
print(f"in the file {written}, read {alone.BuiltinCode()}; with both fields {both.BuiltinCode()}")
sys.exit((written, alone.BuiltinCode(), both.BuiltinCode()) != (quantize, 0, quantize))
PYTHON
"$folder/venv/bin/python" "$folder/codes.py"
