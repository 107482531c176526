"""The artefact: a folder with everything a compiled model needs to run, written whole or not at all.

    manifest.json   what is where: machine, tensors, windows, layers, and the SHA-256 of every other file
    program.json    the program as a tree (isa.program)
    weights.bin     image of main memory at ``weights_address``
    model.c, tilewright.h, crt0.S, float32.c, link.ld, model.elf, model.onnx

Artefacts are untrusted input: nothing in one is executed by the host, and everything read from one is checked.
"""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilewright._version import __version__
from tilewright.compiler.emit.check_program import check_program
from tilewright.compiler.emit.elf import FIRMWARE, MAX_ELF_BYTES
from tilewright.compiler.emit.manifest import (
    FORMAT_VERSION,
    MAX_MEMORY_BYTES,
    ArtefactError,
    Manifest,
    from_json,
    sha256,
    to_json,
    value,
)
from tilewright.isa.extension import Extension
from tilewright.isa.memory import MAIN_BASE
from tilewright.isa.program import Program, ProgramError
from tilewright.isa.program import from_json as program_from_json
from tilewright.isa.program import to_json as program_to_json
from tilewright.tools.files import not_written, reason

FIRMWARE_FILES = ("crt0.S", "float32.c", "link.ld")
FILES = ("program.json", "weights.bin", "model.c", "tilewright.h", *FIRMWARE_FILES, "model.elf", "model.onnx")
MAX_FILE_BYTES = {"manifest.json": 64 << 20, "program.json": 64 << 20, "weights.bin": MAX_MEMORY_BYTES,
                  "model.c": 64 << 20, "tilewright.h": 1 << 20, "model.elf": MAX_ELF_BYTES, "model.onnx": 2 << 30,
                  **dict.fromkeys(FIRMWARE_FILES, 1 << 20)}

__all__ = ["Artefact", "ArtefactError", "load_artefact", "write_artefact"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A checked artefact; ``manifest`` describes its content."""

    folder: Path
    manifest: Manifest
    program: Program

    @property
    def elf(self) -> Path:
        """The program for the host core."""
        return self.folder / "model.elf"

    @property
    def model(self) -> Path:
        """The ONNX file it was compiled from."""
        return self.folder / "model.onnx"

    @property
    def images(self) -> tuple[tuple[int, Path], ...]:
        """Contents of main memory before the start, inputs aside: (address, file)."""
        file = self.folder / "weights.bin"
        return ((self.manifest.weights_address, file),) if file.stat().st_size else ()


def write_artefact(folder: Path, manifest: Manifest, program: Program, contents: dict[str, bytes]) -> Artefact:
    """Write an artefact to ``folder``.

    Parameters
    ----------
    folder
        A new folder, an empty one, or one with an artefact, which is replaced.
    contents
        The files of ``FILES`` by name, except ``program.json`` and ``FIRMWARE_FILES``.

    Raises
    ------
    ArtefactError
        If the folder has something else in it, or cannot be written; nothing half-written is left behind then.
    """
    if folder.exists() and not (folder.is_dir() and ((folder / "manifest.json").is_file()
                                                     or not any(folder.iterdir()))):
        raise ArtefactError(f"Output {folder} must be a new folder or one with an artefact, and contains other files")
    contents = contents | {"program.json": _json(program_to_json(program)),
                           **{name: (FIRMWARE / name).read_bytes() for name in FIRMWARE_FILES}}
    if contents.keys() != set(FILES):
        raise ArtefactError(f"Artefact must have the files {', '.join(FILES)}, not {', '.join(sorted(contents))}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as scratch:
            fresh = Path(scratch, "new")
            fresh.mkdir()
            for name, data in contents.items():
                (fresh / name).write_bytes(data)
            head = {"format_version": FORMAT_VERSION, "tilewright_version": __version__,
                    "files": {name: sha256(fresh / name) for name in FILES}}
            (fresh / "manifest.json").write_bytes(_json(head | to_json(manifest)))
            if folder.exists():
                folder.rename(Path(scratch, "old"))
            fresh.rename(folder)
    except OSError as error:
        raise ArtefactError(not_written(f"Artefact {str(folder)!r}", error)) from error
    return Artefact(folder=folder, manifest=manifest, program=program)


def _json(data: Any) -> bytes:
    return (json.dumps(data, indent=1, ensure_ascii=True) + "\n").encode()


def load_artefact(folder: Path, extension: Extension | None = None) -> Artefact:
    """Read and check the artefact in ``folder``, which was compiled for a machine with ``extension`` if it has one.

    Raises
    ------
    ArtefactError
        If it is none, was made by another version of the format, or is damaged.
    """
    if folder.is_dir() and not (folder / "manifest.json").exists():
        raise ArtefactError(f"Artefact {folder} must have a 'manifest.json', as 'tilewright compile MODEL -o {folder}' "
                            "writes it; with --target baremetal it writes a C project instead, which is not simulated")
    try:
        data = _read_json(folder / "manifest.json")
        version = value(data, "format_version", int)
        if version != FORMAT_VERSION:
            raise ArtefactError(f"Artefact {folder} must have format version {FORMAT_VERSION}, not {version}: compile "
                                f"the model again")
        _check_files(folder, value(data, "files", dict))
        manifest = from_json(data, extension)
        program = program_from_json(_read_json(folder / "program.json"))
        check_program(program, manifest.memory_bytes, manifest.machine)
        weights = (folder / "weights.bin").stat().st_size
    except OSError as error:
        file = str(error.filename or folder)
        raise ArtefactError(f"Artefact file {file!r} cannot be read: {reason(error)}") from error
    except ProgramError as error:
        raise ArtefactError(f"Artefact {folder} has a program that cannot be run: {error}") from error
    _check_layers(folder, manifest, program)
    if manifest.weights_address + weights > MAIN_BASE + manifest.memory_bytes:
        raise ArtefactError(f"Artefact {folder} must have weights inside its {manifest.memory_bytes} bytes of memory, "
                            f"not {weights} bytes at {manifest.weights_address:#x}")
    return Artefact(folder=folder, manifest=manifest, program=program)


def _check_layers(folder: Path, manifest: Manifest, program: Program) -> None:
    listed = [layer.function for layer in manifest.layers]
    present = [function.name for function in program.functions]
    if listed != present[:len(listed)]:
        index = next(index for index, name in enumerate(listed) if present[index:index + 1] != [name])
        found = repr(present[index])[:60] if index < len(present) else "none"
        raise ArtefactError(f"Artefact {folder} must list its layers in the order of its program's functions, but "
                            f"layer {index} names {listed[index]!r:.60} and the program has {found}: compile it again")


def _read_json(path: Path) -> Any:
    _check_size(path)
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"Artefact file {path} must be JSON: {error}") from error


def _check_size(path: Path) -> None:
    size = path.stat().st_size
    if size > MAX_FILE_BYTES[path.name]:
        raise ArtefactError(f"Artefact file {path} must have at most {MAX_FILE_BYTES[path.name]} bytes, not {size}")


def _check_files(folder: Path, hashes: dict[str, Any]) -> None:
    if hashes.keys() != set(FILES):
        raise ArtefactError(f"Artefact {folder} must list the files {', '.join(FILES)}, "
                            f"not {', '.join(sorted(map(str, hashes)))[:200]}")
    for name in FILES:
        _check_size(folder / name)
        if sha256(folder / name) != hashes[name]:
            raise ArtefactError(f"Artefact file {folder / name} must be unchanged, and its SHA-256 differs: compile "
                                "the model again")


