"""Files and folders that are models, but not in ONNX: which format each is in, and the command that exports it."""

import io
import re
import shlex
import zipfile
from pathlib import Path

__all__ = ["foreign_file", "foreign_folder"]

_HEAD = 4096
_PICKLE = b"\x80"
_HDF5 = b"\x89HDF\r\n\x1a\n"
_SAVED_MODEL = "saved_model.pb"
_SAVED_MODEL_HEAD = b"\x08\x01\x12"
"""Version 1 of the format, and the first of its graphs; ONNX files begin with a higher version."""

_EXPORT = "torch.onnx.export(model.eval(), (sample,), 'net.onnx', dynamo=True)"
_OF_TENSORFLOW = "which pip install tf2onnx tensorflow brings"

_PACKED = {b"\x1f\x8b": ("gzip", "gunzip"), b"BZh": ("bzip2", "bunzip2"), b"\xfd7zXZ\x00": ("xz", "unxz"),
           b"\x28\xb5\x2f\xfd": ("zstd", "unzstd"), b"7z\xbc\xaf\x27\x1c": ("7-Zip", "7z x")}

_VENDORS = {b"GGUF": "a language model for llama.cpp (GGUF)", b"ftrt": "an engine of TensorRT",
            b"RKNN": "a model for Rockchip's NPU", b"\x01HEF": "a model for Hailo's NPU",
            b"7767517\n": "a network of ncnn"}
"""First bytes of what other runtimes have made of a model."""

_AT_MOST = 1 << 26
"""Bytes of a member of an archive that are looked at."""


def foreign_file(content: bytes, file: str) -> tuple[str, str] | None:
    """Return what a file is that is no ONNX model, and what to do; None if its format is not known.

    Parameters
    ----------
    content : bytes
        Nothing of it is executed or unpacked.
    file : str
        Its path, which the command repeats; what the command writes lies in the current folder.
    """
    stem = Path(file).name.partition(".")[0] or "net"
    given = shlex.quote(file)
    if content[4:8] == b"ORTM":
        return "in ONNX Runtime's own format", "give the .onnx file that it was made from"
    if content.startswith(_HDF5):
        return "in HDF5, as Keras writes it", _keras(file, stem)
    if content.startswith(b"PK\x03\x04"):
        return _archive(content, file, stem)
    if re.match(rb'.{8}\s*\{\s*"', content[:64], re.DOTALL):
        return ("of weights alone (safetensors), without the layers that they belong to",
                f"load them into their model in Python, and export that with {_EXPORT}")
    if content.startswith(_PICKLE):
        return ("a pickle, as older torch.save wrote it, which is not read because that would execute it",
                f"load it where it was made, and export it with {_EXPORT}")
    return _packed(content, given) or _of_vendor(content) or _other(content, file, stem)


def _packed(content: bytes, given: str) -> tuple[str, str] | None:
    """Return the same of a compressed file or an archive: the command that unpacks it."""
    if content[257:262] == b"ustar":
        return "an archive (tar)", f"unpack it with tar -xf {given}, and give the .onnx file in it"
    for mark, (name, command) in _PACKED.items():
        if content.startswith(mark):
            return f"compressed with {name}", f"unpack it with {command} {given}, and give the .onnx file in it"
    return None


def _of_vendor(content: bytes) -> tuple[str, str] | None:
    """Return the same of what was made for one runtime, and is not turned back."""
    found = next((name for mark, name in _VENDORS.items() if content.startswith(mark)), None)
    return None if found is None else (found, "give the .onnx file that it was made from")


def _other(content: bytes, file: str, stem: str) -> tuple[str, str] | None:
    head, name = content[:_HEAD], Path(file).name
    given, made = shlex.quote(file), shlex.quote(f"{stem}.onnx")
    if name == _SAVED_MODEL or (head.startswith(_SAVED_MODEL_HEAD) and b"saved_model_main_op" in content):
        folder = shlex.quote(str(Path(file).parent)) if name == _SAVED_MODEL else "FOLDER"
        command = f"python -m tf2onnx.convert --saved-model {folder} --output {made}"
        return "the graph of a TensorFlow SavedModel", f"export its folder with {command}, {_OF_TENSORFLOW}"
    if head.startswith(b"\n") and b"Placeholder" in head:
        command = f"python -m tf2onnx.convert --graphdef {given} --inputs IN:0 --outputs OUT:0 --output {made}"
        return "a frozen graph of TensorFlow", f"export it with {command}, {_OF_TENSORFLOW}"
    text = head.lstrip().lower()
    if text.startswith((b"<!doctype html", b"<html")):
        return "a web page", "download the file itself, by the page's raw or download link"
    if text.startswith(b"<?xml") and b"<net" in text:
        return "a model of OpenVINO", "give the .onnx file that it was made from"
    if re.search(rb"^\s*layers? ?\{", head, re.MULTILINE):
        return "a network of Caffe", "give the .onnx file that a converter has made of it"
    if name.endswith((".data", ".onnx_data")):
        return ("the constants of an ONNX model, which are kept beside it",
                f"give the model, {file.removesuffix('.data').removesuffix('_data')}, with this file in its folder")
    if head.startswith((b"\x89PNG\r\n", b"\xff\xd8\xff")):
        return "a picture", "give the model, and pictures as arrays with --input FILE.npy"
    if _is_text(head):
        return "text", "give the .onnx file that the exporter wrote"
    return None


def _is_text(head: bytes) -> bool:
    try:
        return bool(head) and all(letter.isprintable() or letter.isspace() for letter in head.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _keras(file: str, stem: str) -> str:
    code = f"import keras; keras.saving.load_model({file!r}).export({f'{stem}.onnx'!r}, format='onnx')"
    return f'export it with python -c "{code}"'


def _archive(content: bytes, file: str, stem: str) -> tuple[str, str]:
    """Return the same of a zip archive, as most tools write their models: by the names of its members."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.namelist()
            pickle = next((each for each in archive.infolist() if each.filename.endswith("data.pkl")), None)
            pickled = archive.read(pickle) if pickle is not None and pickle.file_size <= _AT_MOST else b""
    except (zipfile.BadZipFile, ValueError, NotImplementedError, RuntimeError, OSError, EOFError):
        return "a zip archive that is cut short or damaged", "copy or download it again"
    last = {member.rpartition("/")[2] for member in members}
    if "model.weights.h5" in last and "config.json" in last:
        return "a model of Keras", _keras(file, stem)
    if last & {"archive_format", "archive_version", "serialized_exported_program.json"}:
        return ("an exported program of torch",
                f"export it with torch.onnx.export(torch.export.load({file!r}), (), '{stem}.onnx', dynamo=True)")
    if any("/code/" in f"/{member}" for member in members):
        return ("a TorchScript program",
                f"export it with torch.onnx.export(torch.jit.load({file!r}), (sample,), '{stem}.onnx', dynamo=False)")
    if b"ultralytics" in pickled:
        return "a checkpoint of Ultralytics", f"export it with yolo export model={shlex.quote(file)} format=onnx"
    if "data.pkl" in last:
        return ("a checkpoint of torch, which is not read because that would execute it",
                f"load it into its model in Python, and export that with {_EXPORT}")
    if members and all(member.endswith(".npy") for member in members):
        return "an archive of arrays", "give the model, and these arrays with --input or --calibrate"
    inside = next((member for member in members if member.endswith(".onnx")), None)
    if inside is not None:
        return f"a zip archive with {inside} in it", f"unpack it, and give {inside}"
    return "a zip archive without an ONNX model in it", "export the model to ONNX, and give that file"


def foreign_folder(folder: Path) -> tuple[str, str] | None:
    """Return what a folder is that is given in place of a model's file, and what to do; None if it is not known."""
    if (folder / _SAVED_MODEL).is_file():
        words = ["--saved-model", str(folder), "--output", f"{folder.name}.onnx"]
        return ("a SavedModel of TensorFlow",
                f"export it with python -m tf2onnx.convert {shlex.join(words)}, {_OF_TENSORFLOW}")
    if (folder / "manifest.json").is_file() and (folder / "model.elf").is_file():
        return "a compiled model", f"run it with tilewright simulate {folder}"
    try:
        names = sorted(each.name for each in folder.iterdir())
    except OSError:
        return None
    if found := [name for name in names if name.endswith(".onnx")]:
        more = " …" if len(found) > 3 else ""
        return f"a folder with {', '.join(found[:3])}{more} in it", f"give {folder / found[0]}"
    if "config.json" in names and any(name.endswith((".safetensors", ".bin")) for name in names):
        return ("a model of Hugging Face's transformers",
                f"export it with optimum-cli export onnx --model {folder} {folder.name}-onnx")
    return None
