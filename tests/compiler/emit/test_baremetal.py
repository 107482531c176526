"""The C project for a board, built as it is written and run on the board's RTL, twice, and through a fault."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_model
from tilewright.compiler.emit.artefact import Artefact
from tilewright.compiler.emit.baremetal import BareMetalError, _array, write_project
from tilewright.compiler.emit.board_image import RAM_BYTES, loaded_memories
from tilewright.compiler.network.layers import TensorInfo
from tilewright.compiler.network.operands import to_memory
from tilewright.compiler.network.options import Options
from tilewright.hardware.board.board_design import contents, design_for
from tilewright.hardware.board.board_simulation import talk
from tilewright.hardware.board.boards import BOARDS
from tilewright.isa.command_port import WaitName
from tilewright.isa.counters import READ_OUTSIDE
from tilewright.isa.machine import preset
from tilewright.models import builtin
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.tools.debian import debian_tool

QUICK = 10
"""Clock cycles per bit of the serial line."""

WFI = 0x10500073
MAIN_BYTES = 66_496
"""Of LeNet-5: smaller models take as much, and so the same simulator."""


def built(artefact: Artefact, folder: Path, *defines: str, wait: WaitName = "poll") -> Path:
    write_project(artefact, folder, wait=wait)
    done = subprocess.run(["make", "-C", folder, f"CC={sys.executable} -m ziglang cc",
                           f"DEFINES=-DCYCLES_PER_BIT={QUICK} -Werror {' '.join(defines)}"],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "model.elf"


def example_input(info: TensorInfo, seed: int) -> np.ndarray:
    """Return the input that main.c makes up."""
    assert info.onnx_shape is not None
    i = np.arange(np.prod(info.onnx_shape), dtype=np.int64)
    step = (i * 37 + (i >> 5) * 11 + seed * 101 & 255) - 128
    values = (step.astype(np.float32) * np.float32(0.5) * np.float32(info.scale)).reshape(info.onnx_shape)
    if info.onnx_dtype == "float32":
        return values
    levels = np.rint(values / np.float32(info.scale)).astype(np.int64) + info.zero_point
    levels = levels.clip(-128, 127)
    return (levels + 128).astype(np.uint8) if info.onnx_dtype == "uint8" else levels.astype(np.int8)


def said(artefact: Artefact, elf: Path, lines: int) -> list[str]:
    """Return the lines that the program says on the board."""
    design = design_for(BOARDS["ulx3s"], artefact.manifest.machine, RAM_BYTES,
                        max(artefact.manifest.memory_bytes, MAIN_BYTES))
    ram, main = loaded_memories(elf.read_bytes(), design.main_bytes)
    frames = [b"\0"] * (lines - 1)  # a byte that nobody reads makes the host wait for another line
    return [line.text for line in talk(design, contents(design, ram, main), frames, cycles_per_bit=QUICK)]


def all_expected(artefact: Artefact, model: Path, seed: int) -> list[np.ndarray]:
    """Return ONNX Runtime's outputs for the made-up inputs."""
    infos = [artefact.manifest.tensors[name][0] for name in artefact.manifest.inputs]
    return session(model).run(None, {info.onnx_name: example_input(info, seed) for info in infos})


def expected(artefact: Artefact, model: Path, seed: int) -> np.ndarray:
    """Return ONNX Runtime's only output."""
    (found,) = all_expected(artefact, model, seed)
    return found


def outputs_of(artefact: Artefact, line: str) -> list[np.ndarray]:
    """Return what a line says, as the model's outputs."""
    word, *values = line.split()
    assert word == "values", line
    found, start = [], 0
    for info in artefact.manifest.outputs:
        stop = start + int(np.prod(info.shape))
        part = np.array(values[start:stop], np.int64)
        less = 128 if info.onnx_dtype == "uint8" and info.dtype == "int8" else 0
        found.append(dequantise_output(info, (part - less).astype(info.dtype).reshape(info.array_shape)))
        start = stop
    assert start == len(values)
    return found


def output_of(artefact: Artefact, line: str) -> np.ndarray:
    """Return what a line says, as the model's only output."""
    (found,) = outputs_of(artefact, line)
    return found


@pytest.mark.parametrize(("network", "keep"), [
    ("lenet5", True), *(pytest.param("mlperf-kws", keep, marks=pytest.mark.slow) for keep in (False, True))])
def test_project_runs_twice_and_after_a_fault(tmp_path, network, keep):
    artefact = compile_model(builtin(network), preset("nano"), tmp_path / "artefact",
                             options=Options(keep_weights=keep))
    assert bool(artefact.program.opening) is keep
    elf = built(artefact, tmp_path / "project", "-DEXAMPLE_FAULT")
    first, second, fault, refused, again = said(artefact, elf, 5)
    right = [expected(artefact, builtin(network), seed) for seed in (0, 1)]
    assert not np.array_equal(*right)
    np.testing.assert_array_equal(output_of(artefact, first), right[0])
    np.testing.assert_array_equal(output_of(artefact, second), right[1])
    word, code, _, address = fault.split()
    assert (word, int(code)) == ("error", READ_OUTSIDE)
    weights = (tmp_path / "project" / "weights.bin").stat().st_size
    assert 0x8000_0000 <= int(address) % (1 << 32) < 0x8000_0000 + weights
    assert refused.split()[:2] == ["error", "100"]
    np.testing.assert_array_equal(output_of(artefact, again), right[1])


def test_several_inputs_and_outputs_are_arrays(tmp_path):
    model = ModelBuilder("qdq", seed=4, dtype=np.uint8, zero_point=None)
    left, right = model.input((1, 3, 7, 6)), model.input((1, 2, 4, 5), integer=True)
    a, b = model.conv(left, 4, kernel=3), model.conv(right, 5, kernel=3)
    model.output(a)
    model.output(b, integer=True)
    proto = model.proto()
    proto.graph.node.add(op_type="Identity", input=[proto.graph.output[0].name], output=["again"])
    again = proto.graph.output.add()
    again.CopyFrom(proto.graph.output[0])
    again.name = "again"
    proto.graph.output.insert(0, again)
    del proto.graph.output[-1]
    onnx.save(proto, tmp_path / "net.onnx")
    artefact = compile_model(tmp_path / "net.onnx", preset("nano"), tmp_path / "artefact")
    assert artefact.manifest.outputs[0].onnx_name == "again"
    elf = built(artefact, tmp_path / "project")
    for seed, line in enumerate(said(artefact, elf, 2)):
        wanted = all_expected(artefact, tmp_path / "net.onnx", seed)
        assert len(wanted) == 3
        for value, right in zip(outputs_of(artefact, line), wanted, strict=True):
            assert value.dtype == right.dtype
            np.testing.assert_array_equal(value, right)
    text = (tmp_path / "project" / "model.h").read_text()
    assert "int tilewright_run(const void *const in[], void *const out[]);" in text
    assert "TILEWRIGHT_INPUTS 2" in text
    assert "TILEWRIGHT_OUTPUTS 3" in text


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["make", "cmake"])
def test_gcc_builds_the_project_too(tmp_path, tool):
    artefact = compile_model(builtin("lenet5"), preset("nano"), tmp_path / "artefact")
    write_project(artefact, tmp_path / "project")
    gcc = debian_tool("riscv64-unknown-elf-gcc")
    if tool == "make":
        commands = [["make", f"CC={gcc}", "ARCH=-march=rv32imc -mabi=ilp32",
                     "LIBRARIES=-nostartfiles -nostdlib -lgcc", f"DEFINES=-DCYCLES_PER_BIT={QUICK}"]]
    else:
        cmake = shutil.which("cmake") or pytest.skip("no CMake on this machine")
        commands = [[cmake, "-B", ".", "-DCMAKE_SYSTEM_NAME=Generic", "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
                     f"-DCMAKE_C_COMPILER={gcc}", f"-DCMAKE_ASM_COMPILER={gcc}",
                     f"-DCMAKE_C_FLAGS=-DCYCLES_PER_BIT={QUICK}"], [cmake, "--build", "."]]
    for command in commands:
        done = subprocess.run(command, cwd=tmp_path / "project", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    first, second = said(artefact, tmp_path / "project" / "model.elf", 2)
    for seed, line in enumerate((first, second)):
        np.testing.assert_array_equal(output_of(artefact, line), expected(artefact, builtin("lenet5"), seed))


def test_example_quantises_as_onnx_runtime_does(tmp_path):
    artefact = compile_model(builtin("lenet5"), preset("nano"), tmp_path / "artefact")
    info, _ = artefact.manifest.tensors[artefact.manifest.inputs[0]]
    levels = quantise_input(info, example_input(info, 0))
    assert len(np.unique(levels)) > 100


def test_no_address_of_main_memory_is_fixed(tmp_path):
    artefact = compile_model(builtin("lenet5"), preset("nano"), tmp_path / "artefact")
    write_project(artefact, tmp_path / "project")
    text = (tmp_path / "project" / "model.c").read_text()
    assert "0x800" in (tmp_path / "artefact" / "model.c").read_text()
    assert "0x800" not in text


def test_folder_with_something_else_is_left_alone(tmp_path):
    artefact = compile_model(builtin("lenet5"), preset("nano"), tmp_path / "artefact")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("mine")
    with pytest.raises(BareMetalError):
        write_project(artefact, tmp_path / "mine")
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["notes"]
    write_project(artefact, tmp_path / "project")
    write_project(artefact, tmp_path / "project")


def test_input_of_channels_goes_where_the_network_reads_it():
    info = TensorInfo(name="image", shape=(3, 4, 5), scale=np.float32(1), zero_point=0, unsigned=False)
    told = _array(info, 0x8000_0040, 0x8000_0040)
    values = np.arange(60, dtype=np.int8).reshape(info.array_shape)
    memory, axes = np.frombuffer(to_memory(values, info), np.int8), np.ndindex(3, 4, 5)
    assert len(told["loops"]) == 3
    found = [memory[eval(told["index"], {"i1": c, "i2": y, "i3": x})] for c, y, x in axes]
    assert found == values.ravel().tolist()


def test_a_project_for_the_registers_must_be_told_where_they_are(tmp_path):
    artefact = compile_model(builtin("lenet5"), preset("nano"), tmp_path / "artefact", port="axi4lite")
    write_project(artefact, tmp_path / "project")
    done = subprocess.run(["make", "-C", tmp_path / "project", f"CC={sys.executable} -m ziglang cc"],
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "TILEWRIGHT_COMMANDS_BASE must be the address" in done.stderr
    elf = built(artefact, tmp_path / "project", "-DTILEWRIGHT_COMMANDS_BASE=0x43c00000")
    assert not _custom_instructions(elf)
    assert _custom_instructions(built(compile_model(builtin("lenet5"), preset("nano"), tmp_path / "other"),
                                      tmp_path / "other project"))
    assert "TILEWRIGHT_REFUSED 16" in (tmp_path / "project" / "model.h").read_text()
    assert "DTILEWRIGHT_COMMANDS_BASE" in (tmp_path / "project" / "README.md").read_text()


def test_a_project_that_sleeps_has_the_instruction_for_it(tmp_path):
    artefact = compile_model(builtin("lenet5"), preset("nano"), tmp_path / "artefact")
    found = []
    for wait in ("poll", "wfi"):
        ram, _ = loaded_memories(built(artefact, tmp_path / wait, wait=wait).read_bytes(), 1 << 20)
        found.append(WFI in [int.from_bytes(ram[place:place + 4], "little") for place in range(0, len(ram) - 3, 2)])
    assert found == [False, True]


def _custom_instructions(elf: Path) -> list[int]:
    """Return the instructions in RAM that are in custom-0 with rd = x0.

    Code begins RAM. An instruction of two bytes has other low bits than 11 (RISC-V unprivileged specification, 1.5), so
    halves of two that follow each other are not taken for one.
    """
    ram, _ = loaded_memories(elf.read_bytes(), 1 << 20)
    found, place = [], 0
    while place < len(ram) - 3:
        word = int.from_bytes(ram[place:place + 4], "little")
        if word & 0xfff == 0x00b and word >> 12 & 7 < 7 and word >> 15 & 0x3ff:
            found.append(word)
        place += 4 if word & 3 == 3 else 2
    return found
