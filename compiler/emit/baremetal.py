"""A compiled model as a C project for a board: relocatable model, a port to the platform, an example, build files.

The network is that of the artefact; only its addresses in main memory become places in two sections, one with the
weights, which may lie in flash, and one for all tensors and records. The files come from ``compiler/c/bare_*``.
"""

import math
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from tilewright.compiler.emit.artefact import Artefact
from tilewright.compiler.emit.c import all_functions, program_text
from tilewright.compiler.emit.elf import FIRMWARE
from tilewright.compiler.emit.kept_state import kept_states
from tilewright.compiler.network.layers import TensorInfo
from tilewright.compiler.network.operands import tensor_operand
from tilewright.errors import InputError
from tilewright.isa.command_port import REFUSED, WaitName
from tilewright.isa.counters import FAULTS
from tilewright.isa.emit_c import register_macros
from tilewright.isa.extension import extension_of
from tilewright.isa.machine import Machine
from tilewright.isa.memory import MAIN_BASE, WINDOWS, AddressWindow
from tilewright.isa.program import DTYPES, Affine, Issue, Loop, Statement
from tilewright.isa.registers.capability import required
from tilewright.isa.registers.host_registers import BY_HOST_REGISTER, HOST_REGISTERS, WindowPins
from tilewright.tools.files import not_written
from tilewright.tools.templates import render

__all__ = ["BareMetalError", "write_project"]

_ALIGNMENT = 64
_TEMPLATES = {"model.h": "bare_model.h.j2", "main.c": "bare_main.c.j2", "link.ld": "bare_link.ld.j2",
              "CMakeLists.txt": "bare_cmake.j2", "Makefile": "bare_makefile.j2", "README.md": "bare_readme.md.j2"}
_COPIES = {"port.h": "bare_port.h", "port.c": "bare_port.c", "start.S": "board_start.S", "weights.S": "bare_weights.S",
           "float32.c": "float32.c"}
_MARK = ".tilewright-project"
_CTYPES = {**{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
           "bool": "uint8_t", "float32": "float"}


_COMMANDS_BASE = """\
#ifndef TILEWRIGHT_COMMANDS_BASE
#error "TILEWRIGHT_COMMANDS_BASE must be the address of the registers: make DEFINES=-DTILEWRIGHT_COMMANDS_BASE=0x..."
#endif
"""
"""Says what a project for the port on AXI4-Lite must be told, as it depends on the board."""

_SLEEPS = """\
#ifndef TILEWRIGHT_WAIT_WFI
#define TILEWRIGHT_WAIT_WFI 1
#endif
"""
"""Has the model sleep at fences."""


class BareMetalError(InputError):
    """A model cannot be written as a project for a board; the message is one sentence."""


def write_project(artefact: Artefact, folder: Path, *, wait: WaitName = "poll",
                  windows: WindowPins | None = None) -> None:
    """Write the project to ``folder``: a new folder, an empty one, or one with such a project, which is replaced.

    The model waits at fences as ``wait`` says. Where its ``windows`` are registers, by default on AXI4-Lite, it sets
    them itself and looks whether the hardware is that of its machine.

    Raises
    ------
    BareMetalError
        If there are no such registers, an input or output has a type that C on the core does not take, or the folder
        holds something else or cannot be written.
    """
    if folder.exists() and not (folder.is_dir() and ((folder / _MARK).is_file() or not any(folder.iterdir()))):
        raise BareMetalError(f"Output {folder} must be a new folder or one with a bare-metal project, and contains "
                             "other files")
    port = artefact.manifest.port
    if windows == "registers" and port != "axi4lite":
        raise BareMetalError(f"Option --windows registers must be given with --port axi4lite, which has registers, not "
                             f"{port!r}; --windows pins is for both")
    contents = _contents(artefact, wait, windows or ("registers" if port == "axi4lite" else "pins"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
            fresh = Path(scratch, "new")
            fresh.mkdir()
            for name, data in contents.items():
                (fresh / name).write_bytes(data)
            for name, source in _COPIES.items():
                shutil.copyfile(FIRMWARE / source, fresh / name)
            if folder.exists():
                folder.rename(Path(scratch, "old"))
            fresh.rename(folder)
    except OSError as error:
        raise BareMetalError(not_written(f"Project {str(folder)!r}", error)) from error


def _contents(artefact: Artefact, wait: WaitName, windows: WindowPins) -> dict[str, bytes]:
    """Return the files that are the model's, by name."""
    manifest = artefact.manifest
    weights = (artefact.folder / "weights.bin").read_bytes()
    if manifest.weights_address != MAIN_BASE:
        raise BareMetalError(f"Weights must begin main memory, at {MAIN_BASE:#x}, not {manifest.weights_address:#x}")
    arena = MAIN_BASE + -(-len(weights) // _ALIGNMENT) * _ALIGNMENT
    for function in all_functions(artefact.program):
        _require_one_section(function.body, arena, {})
    network = program_text(artefact.program, f"{manifest.model} for machine {manifest.machine.name}",
                           extension_of(manifest.machine), entry="static int run_network",
                           address=lambda address: _placed(address, arena), opens=False)
    inputs = [manifest.tensors[name] for name in manifest.inputs]
    outputs = [(info, manifest.tensors[info.name][1]) for info in manifest.outputs]
    states = kept_states(manifest.state, inputs, outputs,
                         lambda info, address: _described([(info, address)], "state", arena)[0])
    taken = _described([each for each in inputs if each[0].onnx_name not in manifest.state], "input", arena)
    given = _described([each for each in outputs if each[0].onnx_name not in manifest.state.values()] or outputs,
                       "output", arena)
    values: dict[str, object] = {
        "name": re.sub(r"[^0-9A-Za-z_.-]", "_", manifest.model), "machine": _plain(manifest.machine.name),
        "inputs": taken, "outputs": given, "sides": {"input": taken, "output": given},
        "states": states, "state_bytes": sum(each.bytes for each in states),
        "signature": ", ".join(([] if not taken else ["const void *const in[]"] if len(taken) > 1 else
                                ["const tilewright_input_t *in"])
                               + ["void *const out[]" if len(given) > 1 else "tilewright_output_t *out"]),
        "weights_bytes": arena - MAIN_BASE, "arena_bytes": MAIN_BASE + manifest.memory_bytes - arena,
        "faults": {code: text for code, text in FAULTS.items() if code},
        "windows": [_window(window, arena) for window in manifest.windows], "port": manifest.port, "refused": REFUSED,
        "keeps": bool(artefact.program.opening), "all_windows": WINDOWS,
        "host_registers": _host_registers(manifest.machine) if windows == "registers" else None,
    }
    texts = {name: render(FIRMWARE / template, **values) for name, template in _TEMPLATES.items()}
    interface = render(FIRMWARE / "bare_model.c.j2", **values)
    head, rest = network.split('#include "tilewright.h"\n', 1)
    places = ('#define TW_WEIGHT(offset) ((uint32_t)tilewright_weights + (offset))\n'
              '#define TW_ARENA(offset) ((uint32_t)tilewright_arena + (offset))\n')
    base = (_COMMANDS_BASE if manifest.port == "axi4lite" else "") + (_SLEEPS if wait == "wfi" else "")
    texts["model.c"] = (f'{head}#include "model.h"\n#include "port.h"\n{base}#include "tilewright.h"\n\n{places}{rest}'
                        f'\n{interface}')
    return {**{name: text.encode() for name, text in texts.items()}, _MARK: b"",
            "tilewright.h": (artefact.folder / "tilewright.h").read_bytes(),
            "weights.bin": weights.ljust(arena - MAIN_BASE, b"\0")}


def _host_registers(machine: Machine) -> dict[str, object]:
    """Return macros of the registers for the host, and register, mask and value of what the program relies on."""
    return {"macros": register_macros(HOST_REGISTERS),
            "required": [(BY_HOST_REGISTER[name].offset, mask, value, name)
                         for name, (mask, value) in required(machine).items()]}


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() and letter.isascii() and letter not in '"\\*' else "_"
                   for letter in text)


def _placed(address: int, arena: int) -> str:
    """Return the C expression of an address."""
    return f"TW_WEIGHT({address - MAIN_BASE:#x})" if address < arena else f"TW_ARENA({address - arena:#x})"


def _window(window: AddressWindow, arena: int) -> dict[str, object]:
    """Return a window as C: its ends are in one section."""
    section = window.base < arena
    start = MAIN_BASE if section else arena
    if section and window.limit > arena:
        raise BareMetalError(f"Window {window.name!r} must end with the weights, not at {window.limit:#x}")
    macro = "TW_WEIGHT" if section else "TW_ARENA"
    return {"base": f"{macro}({window.base - start:#x})", "limit": f"{macro}({window.limit - start:#x})",
            "rights": int(window.readable) | int(window.writable) << 1, "name": window.name}


def _require_one_section(body: Sequence[Statement], arena: int, counts: Mapping[str, int]) -> None:
    """Refuse a loop whose addresses begin in one section and end in the other."""
    for statement in body:
        if isinstance(statement, Loop):
            _require_one_section(statement.body, arena, {**counts, statement.variable: statement.count})
        elif isinstance(statement, Issue) and "address" in statement.operands:
            value = statement.operands["address"]
            low, high = _range(value, counts)
            if (low < arena) != (high < arena) or (value.constant < arena) != (low < arena):
                raise BareMetalError(f"Addresses of {statement.mnemonic}.{statement.variant} must stay in weights or "
                                     f"in tensors, not go from {low:#x} to {high:#x}: compile for another machine")


def _range(value: Affine, counts: Mapping[str, int]) -> tuple[int, int]:
    low = high = value.constant
    for term in value.terms:
        reach = term.coefficient * ((term.modulus or counts[term.variable]) - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def _described(tensors: Sequence[tuple[TensorInfo, int]], what: str, arena: int) -> list[dict[str, object]]:
    """Return what the templates say of the inputs or outputs, which are numbered if there are several."""
    for info, _ in tensors:
        if info.words:
            raise BareMetalError(f"The {what} {info.name!r} of a model for a board must be bytes or float, and is of "
                                 "words of 16 bits: quantise it to 8 bits, or leave wide_words out")
        if info.dtype not in _CTYPES or info.preparation:
            raise BareMetalError(f"The {what} {info.name!r} of a model for a board must be one of "
                                 f"{', '.join(_CTYPES)}, as the network takes it, not {info.dtype} after other "
                                 "operations: compute them before the network, and quantise what it then takes")
    numbers = [""] if len(tensors) == 1 else [str(index) for index in range(len(tensors))]
    return [_array(info, address, arena) | {"number": number}
            for number, (info, address) in zip(numbers, tensors, strict=True)]


def _array(info: TensorInfo, address: int, arena: int) -> dict[str, object]:
    """Return what the templates say of an input or output; ``unsigned``: its bytes are stored less 128."""
    operand = tensor_operand(info.of_image, address)
    dims, strides = operand.dims, operand.strides
    if info.images > 1:
        dims, strides = (info.images, *dims), (info.image_step // DTYPES[info.dtype], *strides)
    size = math.prod(dims)
    unsigned = info.dtype == "int8" and info.onnx_dtype == "uint8"
    return {"ctype": "uint8_t" if unsigned else _CTYPES[info.dtype], "memory_type": _CTYPES[info.dtype],
            "unsigned": unsigned, "elements": size, "scale": _float_literal(info.scale),
            "zero_point": info.zero_point + (128 if unsigned else 0), "name": _plain(info.onnx_name or info.name),
            "quantised": info.dtype == "int8", **_scales(info), "place": _placed(address, arena),
            "shape": "x".join(map(str, info.onnx_shape or dims)), "loops": list(_loops(dims)),
            "index": " + ".join(f"i{axis} * {stride}" for axis, (length, stride) in
                                enumerate(zip(dims, strides, strict=True)) if length > 1) or "0"}


def _float_literal(value: np.float32) -> str:
    """Return a number as C has floats."""
    text = f"{float(value):.9g}"
    return f"{text}{'' if '.' in text or 'e' in text else '.0'}f"


def _scales(info: TensorInfo) -> dict[str, object]:
    """Return scale and offset of each channel of whole sums, as C writes floats; none of other tensors."""
    if info.channels is None:
        return {"channels": ()}
    offset = info.channels.offset or (0.0,) * len(info.channels.scale)
    return {"channels": [tuple(f"{each:.9e}f" for each in pair)
                         for pair in zip(info.channels.scale, offset, strict=True)],
            "channel_shape": "x".join(map(str, info.channels.shape))}


def _loops(dims: tuple[int, ...]) -> Iterator[str]:
    """Yield the heads of the loops over a tensor in ONNX's order, but for axes of one element."""
    for axis, length in enumerate(dims):
        if length > 1:
            yield f"for (uint32_t i{axis} = 0; i{axis} < {length}; i{axis}++)"
