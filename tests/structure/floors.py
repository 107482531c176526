"""Who may import whom: the one source of the rule, folder by folder."""

import sys
from pathlib import PurePosixPath

from tests.structure.source import imported

_CORES = {"pythondata_cpu_cv32e40p", "pythondata_cpu_cv32e40x", "pythondata_cpu_ibex"}

# What the writers of bench/toolchains import, each in the environment of its tool.
_QUANTISERS = {"aimet_onnx", "brevitas", "esp_ppq", "modelopt", "neural_compressor", "nncf", "onnx", "onnxruntime",
               "quark", "torch", "torchao"}

# Folders from the lowest to the highest: a folder imports from those above it in this list, never from those below.
FLOORS = (
    "isa", "isa/coded", "isa/dram", "isa/integers", "isa/registers", "isa/rows", "isa/words", "isa/semantics", "models",
    "tools",
    "rtl/stream", "rtl/arithmetic", "rtl/bus", "rtl/buffers", "rtl/array/sequencer", "rtl/array", "rtl/load",
    "rtl/store", "rtl/post", "rtl/port", "rtl",
    "compiler/errors", "compiler/kernels/language", "compiler/kernels/operators",
    "compiler/kernels/levels", "compiler/kernels/levels/softmax", "compiler/kernels",
    "compiler/network", "compiler/network/factors", "compiler/network/parts", "compiler/network/rows",
    "compiler/channels", "compiler/graph",
    "compiler/normal", "compiler/normal/arithmetic", "compiler/normal/forms", "compiler/normal/rules",
    "compiler/control", "compiler/tflite/numbers", "compiler/tflite/stored", "compiler/tflite", "compiler/pulp",
    "compiler/onnx/dialects", "compiler/onnx/sizes", "compiler/onnx", "compiler/onnx/ends", "compiler/stream",
    "compiler/passes/images",
    "compiler/passes/recognise", "compiler/passes/recognise/equivalents",
    "compiler/passes/recognise/normalisations", "compiler/passes/recognise/moves",
    "compiler/passes/recognise/qdq", "compiler/passes/recognise/sums",
    "compiler/passes/canonicalise", "compiler/passes/fuse", "compiler/passes/lower", "compiler/passes",
    "compiler/scales", "compiler/plan", "compiler/words", "compiler/weights", "compiler/schedule", "compiler/batch",
    "compiler/emit", "compiler",
    "sim/verilog/modular", "sim/verilog", "sim/verilator", "sim/values", "sim/timing", "sim/waves", "sim",
    "energy",
    "runtime/design", "runtime/execution", "runtime/oracle", "runtime/quantise", "runtime/baseline", "runtime",
    "runtime/precision", "runtime/advice", "runtime/accuracy", "runtime/card", "runtime/compare", "runtime/ranges",
    "runtime/check", "runtime/views",
    "hardware/gates/cells", "hardware/gates",
    "hardware/synthesis/ecp5", "hardware/synthesis/families", "hardware/synthesis/layout", "hardware/synthesis",
    "hardware/board",
    "hardware/package", "hardware/area_model",
    "hardware/proofs", "hardware/calibration", "hardware",
    "bench/explore_page", "bench/exploration", "bench/precision", "bench/ablation", "bench/pictures", "bench",
    "bench/memory", "bench/batch", "bench/speed", "bench/zoo", "bench/toolchains/writers", "bench/toolchains",
    "cli/tables", "cli/reference", "cli/options", "cli/design", "cli",
    "examples/extensions",
)

# What a top-level folder may import: our folders, and packages of others.
ALLOWED = {
    "isa": (set(), {"numpy"}),     # in isa/coded and isa/semantics alone: see DOORS
    "models": (set(), {"numpy", "onnx", "onnxruntime", "sklearn", "torch"}),
    "tools": (set(), {"jinja2", "numpy", "pyosys", "rich"}),
    "rtl": ({"isa"}, {"amaranth"}),
    # google: protobuf, whose error tells that a file is no ONNX.
    "compiler": ({"isa", "tools"},
                 {"google", "immutables", "ml_dtypes", "numpy", "onnx", "onnx_ir", "onnxruntime", "onnxscript",
                  "tflite", "ziglang"}),
    "sim": ({"isa", "rtl", "tools"}, {"amaranth", "cocotb", "numpy", *_CORES}),
    "energy": ({"isa", "compiler", "sim", "tools"}, {"numpy"}),
    # models/ lends runtime/ the files of the built-in networks, and no torch.
    "runtime": ({"compiler", "energy", "isa", "models", "sim", "tools"},
                {"google", "numpy", "onnx", "onnxruntime", "pydantic", "rich"}),
    # amaranth, bitwuzla, rtl: in hardware/proofs, amaranth_boards: in hardware/board, coloquinte: in
    # hardware/synthesis/layout alone, see DOORS.
    "hardware": ({"compiler", "energy", "isa", "models", "rtl", "runtime", "sim", "tools"},
                 {"amaranth", "amaranth_boards", "bitwuzla", "coloquinte", "numpy", "rich", *_CORES}),
    # matplotlib in bench/pictures; optuna, plotly, pydantic, ray in bench/exploration, quantisers in bench/toolchains
    # alone: see DOORS.
    "bench": ({"compiler", "energy", "hardware", "isa", "models", "runtime", "sim", "tools"},
              {"matplotlib", "numpy", "optuna", "plotly", "pydantic", "ray", *_QUANTISERS}),
    "cli": ({"bench", "compiler", "energy", "hardware", "isa", "models", "runtime", "sim", "tools"},
            {"click", "numpy", "packaging", "rich", "typer"}),
    # As a user's own files do.
    "examples": ({"isa"}, {"amaranth", "numpy", "onnx"}),
}

# Heavy dependencies, and the only files and folders that may import them.
DOORS = {
    "amaranth": ("examples", "hardware/proofs/guarded_master.py", "hardware/proofs/unitless_coprocessor.py", "rtl",
                 "sim/verilog/elaborate.py", "sim/verilog/modular"),
    "amaranth_boards": ("hardware/board/boards.py",),
    "bitwuzla": ("hardware/proofs/unrolled_model.py",),
    "coloquinte": ("hardware/synthesis/layout/coloquinte_placer.py",),
    "google": ("compiler/onnx", "runtime/oracle"),
    "matplotlib": ("bench/pictures",),
    "numpy": ("isa/coded", "isa/integers", "isa/rows", "isa/semantics", "isa/words", "models", "tools", "compiler",
              "sim", "energy", "runtime", "hardware", "bench", "cli", "examples"),
    "onnx": ("bench/precision", "bench/toolchains", "compiler/control", "compiler/normal", "compiler/onnx",
             "compiler/pulp", "compiler/stream", "compiler/tflite/graph_builder.py", "compiler/tflite/tflite_reader.py",
             "examples", "compiler/graph/value_tables.py", "models", "runtime/onnx_backend.py", "runtime/precision",
             "runtime/quantise", "runtime/oracle"),
    "onnx_ir": ("compiler/normal", "compiler/onnx/cleaning.py"),
    "onnxruntime": ("bench/toolchains/writers", "compiler/graph/value_tables.py",
                    "compiler/normal/folding.py", "compiler/onnx/opset.py", "models", "runtime"),
    "onnxscript": ("compiler/onnx/cleaning.py",),
    "tilewright.rtl": ("hardware/proofs/guarded_master.py", "hardware/proofs/stop_values.py",
                       "hardware/proofs/unitless_coprocessor.py", "rtl", "sim/verilog/elaborate.py"),
    "optuna": ("bench/exploration",),
    "plotly": ("bench/explore_page/explore_figures.py",),
    "packaging": ("cli/doctor.py",),
    "pydantic": ("runtime/design", "bench/exploration/space_file.py"),
    "pyosys": ("tools/native_yosys.py",),
    "ray": ("bench/exploration/ray_workers.py",),
    "tflite": ("compiler/tflite/flat_file.py", "compiler/tflite/stored/sparse.py"),
    "torch": ("bench/toolchains/writers", "models"),
    **dict.fromkeys(("aimet_onnx", "brevitas", "esp_ppq", "modelopt", "neural_compressor", "nncf", "quark", "torchao"),
                    ("bench/toolchains/writers",)),
}

_ROOT_MODULES = ("errors", "_version")
"""Of the package's own modules, those that every folder may import."""


def offences(source: str, path: str) -> list[str]:
    """Return a sentence for each import in ``source``, the text of ``path``, that breaks a rule of this file."""
    folder = str(PurePosixPath(path).parent)
    ours, others = ALLOWED[PurePosixPath(path).parts[0]]
    found = []
    for name in sorted(imported(source, path)):
        top, *rest = name.split(".")
        if top == "tilewright":
            below = _folder_of(rest)
            if below and below.partition("/")[0] not in {*ours, folder.partition("/")[0]}:
                found.append(f"{path} imports {name}: {folder}/ must not import {below}/")
            elif below and FLOORS.index(below) > FLOORS.index(folder):
                found.append(f"{path} imports {name}: {below}/ is above {folder}/")
        elif top not in others and top not in sys.stdlib_module_names:
            found.append(f"{path} imports {name}: {folder}/ must not import {top}")
        for door, openings in DOORS.items():
            if f"{name}.".startswith(f"{door}.") and not any(
                    path == opening or path.startswith(f"{opening}/") for opening in openings):
                found.append(f"{path} imports {name}: only {' and '.join(openings)} may import {door}")
    return found


def _folder_of(parts: list[str]) -> str | None:
    """Return the lowest folder on the way to what is imported; None for modules that every folder may import."""
    if not parts or parts[0] in _ROOT_MODULES:
        return None
    while parts and "/".join(parts) not in FLOORS:
        parts = parts[:-1]
    return "/".join(parts) or None
