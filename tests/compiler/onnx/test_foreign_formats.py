"""A model in another format than ONNX is named in one sentence, with the command that exports it."""

import io
import pickle
import struct
import zipfile

import onnx
import pytest

from tests.cli.test_app import invoke, refused
from tests.support.float_models import classifier
from tilewright.compiler.errors import BadModelError
from tilewright.compiler.onnx.reader import read_model


def archive(**members):
    """Return a zip archive; __ in a name stands for /, and _dot_ for a full stop."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, data in members.items():
            file.writestr(name.replace("__", "/").replace("_dot_", "."), data)
    return content.getvalue()


SAFETENSORS = struct.pack("<Q", 17) + b'{"w":{"dtype":0}}' + bytes(8)
TRUNCATED = classifier().SerializeToString()[:-40]

FORMATS = [
    ("net.h5", b"\x89HDF\r\n\x1a\n" + bytes(40), "Keras", "keras.saving.load_model('net.h5')"),
    ("net.keras", archive(config_dot_json="{}", model_dot_weights_dot_h5=b"h"), "Keras", "load_model('net.keras')"),
    ("net.pt2", archive(net__archive_format="pt2", net__models__model_dot_json="{}"), "exported program",
     "torch.export.load('net.pt2')"),
    ("net.pt", archive(net__data_dot_pkl=b"x", net__data__0=b""), "checkpoint of torch", "torch.onnx.export("),
    ("yolo.pt", archive(yolo__data_dot_pkl=b"cultralytics.nn.tasks\n"), "Ultralytics",
     "yolo export model=yolo.pt format=onnx"),
    ("script.pt", archive(script__code____torch___dot_py="", script__data_dot_pkl=b"x"), "TorchScript",
     "torch.jit.load('script.pt')"),
    ("old.pth", pickle.dumps({"weight": [1.0]}), "pickle", "torch.onnx.export("),
    ("net.safetensors", SAFETENSORS, "safetensors", "torch.onnx.export("),
    ("net.onnx.data", bytes(range(200, 250)), "constants of an ONNX model", "net.onnx,"),
    ("model.onnx_data", bytes(range(200, 250)), "constants of an ONNX model", "model.onnx,"),
    ("pointer.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n", "Git LFS", "git lfs pull"),
    ("saved_model.pb", b"\x08\x01\x12\xff\xff\xff\xff", "SavedModel", "--saved-model"),
    ("frozen.pb", b"\n\x0f\n\x01x\x12\x0bPlaceholder" + b"\xff" * 9, "TensorFlow", "--graphdef frozen.pb"),
    ("models.zip", archive(a__net_dot_onnx=b"x"), "a/net.onnx", "unpack"),
    ("other.zip", archive(readme="x"), "zip archive", "export the model to ONNX"),
    ("samples.npz", archive(x_dot_npy=b"x"), "arrays", "--calibrate"),
    ("broken.zip", b"PK\x03\x04" + bytes(30), "damaged", "copy or download it again"),
    ("net.onnx.gz", b"\x1f\x8b\x08" + bytes(30), "gzip", "gunzip net.onnx.gz"),
    ("net.ort", b"\x1c\x00\x00\x00ORTM" + bytes(40), "ONNX Runtime's own format", ".onnx file that it was made from"),
    ("page.onnx", b"\n<!DOCTYPE html>\n<html>", "web page", "download"),
    ("net.onnx.bz2", b"BZh91AY" + bytes(9), "bzip2", "bunzip2 net.onnx.bz2"),
    ("net.tar", b"net.onnx" + bytes(249) + b"ustar\x0000" + bytes(99), "tar", "tar -xf net.tar"),
    ("net.gguf", b"GGUF\x03" + bytes(9), "GGUF", ".onnx file that it was made from"),
    ("net.engine", b"ftrt" + bytes(9), "TensorRT", ".onnx file that it was made from"),
    ("net.prototxt", b'name: "net"\nlayer {\n}\n', "Caffe", "converter"),
    ("cat.png", b"\x89PNG\r\n\x1a\n" + bytes(9), "picture", "--input FILE.npy"),
    ("notes.onnx", "Größe".encode(), "text", ".onnx file"),
    ("noise.bin", bytes(range(255, 200, -1)), "damaged", ".onnx file"),
    ("a frozen.pb", b"\n\x0f\n\x01x\x12\x0bPlaceholder" + b"\xff" * 9, "TensorFlow",
     "--graphdef 'a frozen.pb' --inputs IN:0 --outputs OUT:0 --output 'a frozen.onnx'"),
    ("net.xml", b'<?xml version="1.0"?>\n<net name="x">', "OpenVINO", ".onnx file that it was made from"),
]


@pytest.mark.parametrize(("name", "content", "what", "command"), FORMATS, ids=[each[0] for each in FORMATS])
def test_a_format_is_named_with_what_to_do(tmp_path, monkeypatch, name, content, what, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_bytes(content)
    told = refused(2, "check", name)
    assert name in told
    assert what in told
    assert command in told
    assert "\\x" not in told


def test_a_model_that_is_cut_short_is_still_called_that(tmp_path):
    (tmp_path / "net.onnx").write_bytes(TRUNCATED)
    with pytest.raises(BadModelError, match="cut short or damaged"):
        read_model(tmp_path / "net.onnx")


def test_the_command_repeats_the_path_that_was_given(tmp_path):
    path = tmp_path / "net.onnx.gz"
    path.write_bytes(b"\x1f\x8b\x08" + bytes(30))
    assert f"gunzip {path}" in refused(2, "check", path)


def test_folders_are_named_too(tmp_path):
    saved = tmp_path / "saved"
    saved.mkdir()
    (saved / "saved_model.pb").write_bytes(b"x")
    assert f"tf2onnx.convert --saved-model {saved}" in refused(2, "check", saved)
    hub = tmp_path / "hub"
    hub.mkdir()
    (hub / "config.json").write_text("{}")
    (hub / "model.safetensors").write_bytes(SAFETENSORS)
    assert "optimum-cli export onnx" in refused(2, "check", hub)
    assert "a folder" in refused(2, "check", tmp_path)
    onnx.save(classifier(), tmp_path / "net.onnx")
    assert f"give {tmp_path / 'net.onnx'}" in refused(2, "check", tmp_path)
    assert invoke("compile", "lenet5", "-o", tmp_path / "compiled").exit_code == 0
    assert "tilewright simulate" in refused(2, "check", tmp_path / "compiled")


def test_a_file_that_is_not_there_is_called_that(tmp_path):
    onnx.save(classifier(), tmp_path / "detector.onnx")
    told = refused(2, "check", tmp_path / "detecter.onnx")
    assert "there is no file" in told
    assert "detector.onnx is near" in told
    assert "lenet5" not in told
    assert "lenet5 is near" in refused(2, "check", "lenet")
