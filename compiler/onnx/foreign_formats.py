"""Files and folders that are models, but not in ONNX: which format each is in, and the command that exports it."""

import io
import re
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
_AT_MOST = 1 << 26
"""Bytes of a member of an archive that are looked at."""


def foreign_file(content: bytes, name: str) -> tuple[str, str] | None:
    """Return what a file is that is no ONNX model, and what to do; None if its format is not known.

    Parameters
    ----------
    content : bytes
        Nothing of it is executed or unpacked.
    name : str
        The file's name, which the command repeats.
    """
    stem = name.partition(".")[0] or "net"
    if content[4:8] == b"TFL3":
        return ("a TensorFlow Lite model",
                f"export it with python -m tf2onnx.convert --tflite {name} --output {stem}.onnx")
    if content[4:8] == b"ORTM":
        return "in ONNX Runtime's own format", "give the .onnx file that it was made from"
    if content.startswith(_HDF5):
        return "in HDF5, as Keras writes it", _keras(name, stem)
    if content.startswith(b"PK\x03\x04"):
        return _archive(content, name, stem)
    if re.match(rb'.{8}\s*\{\s*"', content[:64], re.DOTALL):
        return ("of weights alone (safetensors), without the layers that they belong to",
                f"load them into their model in Python, and export that with {_EXPORT}")
    if content.startswith(b"\x1f\x8b"):
        return "compressed with gzip", f"unpack it with gunzip {name}"
    if content.startswith(_PICKLE):
        return ("a pickle, as older torch.save wrote it, which is not read because that would execute it",
                f"load it where it was made, and export it with {_EXPORT}")
    return _other(content, name, stem)


def _other(content: bytes, name: str, stem: str) -> tuple[str, str] | None:
    head = content[:_HEAD]
    if name == _SAVED_MODEL or (head.startswith(_SAVED_MODEL_HEAD) and b"saved_model_main_op" in content):
        return ("the graph of a TensorFlow SavedModel",
                f"export its folder with python -m tf2onnx.convert --saved-model FOLDER --output {stem}.onnx")
    if head.startswith(b"\n") and b"Placeholder" in head:
        command = f"python -m tf2onnx.convert --graphdef {name} --inputs IN:0 --outputs OUT:0 --output {stem}.onnx"
        return "a frozen graph of TensorFlow", f"export it with {command}"
    text = head.lstrip().lower()
    if text.startswith((b"<!doctype html", b"<html")):
        return "a web page", "download the file itself, by the page's raw or download link"
    if text.startswith(b"<?xml") and b"<net" in text:
        return "a model of OpenVINO", "give the .onnx file that it was made from"
    if name.endswith((".data", ".onnx_data")):
        return ("the constants of an ONNX model, which are kept beside it",
                f"give the model, {name.removesuffix('.data').removesuffix('_data')}, with this file in its folder")
    return None


def _keras(name: str, stem: str) -> str:
    return (f'export it with python -c "import keras; keras.saving.load_model(\'{name}\').export(\'{stem}.onnx\', '
            'format=\'onnx\')"')


def _archive(content: bytes, name: str, stem: str) -> tuple[str, str]:
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
        return "a model of Keras", _keras(name, stem)
    if last & {"archive_format", "archive_version", "serialized_exported_program.json"}:
        return ("an exported program of torch",
                f"export it with torch.onnx.export(torch.export.load('{name}'), (), '{stem}.onnx', dynamo=True)")
    if any("/code/" in f"/{member}" for member in members):
        return ("a TorchScript program",
                f"export it with torch.onnx.export(torch.jit.load('{name}'), (sample,), '{stem}.onnx', dynamo=False)")
    if b"ultralytics" in pickled:
        return "a checkpoint of Ultralytics", f"export it with yolo export model={name} format=onnx"
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
        return ("a SavedModel of TensorFlow",
                f"export it with python -m tf2onnx.convert --saved-model {folder} --output {folder.name}.onnx")
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
