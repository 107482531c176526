"""Every command works, and every refusal is one sentence on standard error with the promised exit status."""

import errno
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from tests.runtime.execution.test_report import KEYS, LAYER_KEYS
from tests.support.float_models import classifier
from tests.support.onnx_models import ModelBuilder
from tests.support.waves import read_waveform
from tilewright.cli import doctor
from tilewright.cli.app import app
from tilewright.cli.options import arguments as cli_options
from tilewright.isa.encoding import INSTRUCTIONS
from tilewright.models import builtin, data
from tilewright.runtime.oracle import comparison as compare
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.tools import progress

IMAGE = data.samples().images[:1]


def invoke(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="tilewright",
                              catch_exceptions=False)


def refused(status, *arguments):
    """Run a command that must end with ``status`` and return its one sentence, however slow the computer is."""
    with mock.patch.object(progress, "WORTH_MENTIONING", math.inf):
        done = invoke(*arguments)
    assert (done.exit_code, done.stdout) == (status, ""), done.output
    assert done.stderr.startswith("tilewright: ")
    assert done.stderr.endswith(".\n")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("tilewright: ").removesuffix(".\n")


def small_model():
    builder = ModelBuilder("qdq", seed=1)
    builder.output(builder.conv(builder.input((1, 3, 8, 8)), 4, kernel=3, pads=(1, 1, 1, 1)))
    return builder.finish()


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Return a folder with lenet5 compiled for nano."""
    folder = tmp_path_factory.mktemp("compiled") / "lenet5"
    done = invoke("compile", "lenet5", "-o", folder, "--machine", "nano")
    assert (done.exit_code, done.stdout) == (0, f"{folder}\n"), done.output
    return folder


@pytest.fixture
def artefact(compiled, tmp_path):
    """Return a copy of it, to be spoilt."""
    return Path(shutil.copytree(compiled, tmp_path / "artefact"))


# ---- what works


NO_MACHINE = ("Machine must be one of nano, base, large, base_depthwise, large_depthwise, base_integer, a design "
              "file (.toml), or one of these with changes, such as base,lanes=8, not 'huge'")


@pytest.mark.parametrize("machine", ["nano", "base", "large"])
def test_run_reports_and_matches(tmp_path, machine):
    done = invoke("run", "lenet5", "--machine", machine, "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    assert "5 of 5 layers compared with ONNX Runtime: every element is equal" in done.stdout
    assert "input: digit 0 of models/digits.npz" in done.stdout
    assert "not calibrated" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report) == KEYS
    assert all(set(layer) == LAYER_KEYS for layer in report["layers"])
    assert (report["model"], report["machine"], report["engine"]) == ("lenet5", machine, "fast")
    assert report["matches_reference"] is True
    assert report["macs"] == 416_520
    assert set(report["instructions"]) == {each.mnemonic for each in INSTRUCTIONS} | {"riscv"}
    assert 0 < sum(layer["cycles"] for layer in report["layers"]) < report["cycles"]
    assert report["energy"]["low_uj"] < report["energy"]["total_uj"] < report["energy"]["high_uj"]


def test_run_takes_any_model_and_says_what_it_was_given(tmp_path):
    (tmp_path / "net.onnx").write_bytes(small_model())
    done = invoke("run", tmp_path / "net.onnx")
    assert done.exit_code == 0, done.output
    assert "input: random values over the quantised range, seed 0" in done.stdout
    assert "1 of 1 layers compared" in done.stdout


def test_an_input_that_nothing_reads_need_not_be_given(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    for name, model in (("int8", onnx.load_from_string(small_model())), ("float", classifier())):
        model.graph.input.append(onnx.helper.make_tensor_value_info("unread", onnx.TensorProto.FLOAT, (1, 3)))
        onnx.save(model, tmp_path / f"{name}.onnx")
        for command in ("run", "compare"):
            done = invoke(command, tmp_path / f"{name}.onnx")
            assert done.exit_code == 0, done.output


def test_statistics_are_a_table_and_part_of_the_json(tmp_path):
    done = invoke("run", "lenet5", "--statistics", "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    assert "Values of the int8 tensors" in done.stdout
    statistics = json.loads((tmp_path / "report.json").read_text())["statistics"]
    assert [set(each) for each in statistics] == [{"layer", "elements", "zeros", "saturated", "levels"}] * 5


def test_layers_are_simulated_in_rtl_by_ranges():
    done = invoke("run", "lenet5", "--engine", "rtl", "--layers", "1:5", "--jobs", "2")
    assert done.exit_code == 0, done.output
    assert "4 of 4 layers compared with ONNX Runtime: every element is equal" in done.stdout
    assert "prefetching across their borders, as in a single run, is not counted" in done.stdout


def test_layers_of_a_compiled_model_are_simulated_by_ranges(compiled, tmp_path):
    done = invoke("simulate", compiled, "--engine", "rtl", "--layers", "3:", "--jobs", "1", "--json",
                  tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    assert "2 of 2 layers compared with ONNX Runtime: every element is equal" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["model"], report["machine"], len(report["layers"])) == ("lenet5", "nano", 2)


@pytest.mark.parametrize(("options", "sentence"), [
    (("--layers", "0:2"),
     "Options --layers and --jobs need --engine rtl, and exclude --wave, --activity and --host"),
    (("--jobs", "2", "--engine", "rtl", "--wave", "x.vcd"),
     "Options --layers and --jobs need --engine rtl, and exclude --wave, --activity and --host"),
    (("--layers", "0:2", "--engine", "rtl", "--output", "x"),
     "Option --output excludes --layers: a range of layers may not include the outputs"),
    (("--fresh",), "Option --fresh needs --layers or --jobs: nothing else is saved between runs"),
    (("--layers", "3:9", "--engine", "rtl"),
     "Layers must be A:B with 0 <= A < B <= 5, the number of layers, not '3:9'"),
    (("--wave-cycles", "3:9", "--engine", "rtl"),
     "Option --wave-cycles needs --wave FILE: no waveform is written without"),
    (("--wave-cycles", "9:3", "--engine", "rtl", "--wave", "x.vcd"),
     "Option --wave-cycles must be A:B with A below B, not '9:3'"),
])
def test_layers_of_a_compiled_model_that_cannot_be_simulated_are_refused(compiled, options, sentence):
    assert refused(2, "simulate", compiled, *options) == sentence


@pytest.mark.parametrize(("options", "sentence"), [
    (("--layers", "0:2"),
     ("Options --layers and --jobs need --engine rtl, and exclude --wave, --explain, --activity, --outputs-only, "
      "--host, --state, --stream and --keep-weights")),
    (("--jobs", "2", "--engine", "rtl", "--explain"),
     ("Options --layers and --jobs need --engine rtl, and exclude --wave, --explain, --activity, --outputs-only, "
      "--host, --state, --stream and --keep-weights")),
    (("--fresh",), "Option --fresh needs --layers or --jobs: nothing else is saved between runs"),
    (("--layers", "3:9", "--engine", "rtl"),
     "Layers must be A:B with 0 <= A < B <= 5, the number of layers, not '3:9'"),
])
def test_layers_that_cannot_be_simulated_are_refused(options, sentence):
    assert refused(2, "run", "lenet5", *options) == sentence


@pytest.mark.slow
def test_run_in_rtl_agrees_with_the_fast_engine_on_every_count(tmp_path):
    reports = {}
    for engine in ("rtl", "fast"):
        done = invoke("run", "lenet5_accel", "--machine", "nano", "--engine", engine, "--json", tmp_path / engine)
        assert done.exit_code == 0, done.output
        reports[engine] = json.loads((tmp_path / engine).read_text())
    rtl, fast = reports["rtl"], reports["fast"]
    assert rtl["matches_reference"] is fast["matches_reference"] is True
    assert set(rtl) == KEYS
    assert {**rtl["instructions"], "riscv": 0} == {**fast["instructions"], "riscv": 0}
    assert fast["cycles"] == pytest.approx(rtl["cycles"], rel=0.02)


def test_a_compiled_model_is_simulated_with_given_inputs(compiled, tmp_path):
    np.savez(tmp_path / "in.npz", image=data.samples().images[3:4])
    done = invoke("simulate", compiled, "--input", tmp_path / "in.npz", "--output", tmp_path / "out.npz",
                  "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    (expected,) = onnx_session(builtin("lenet5")).run(None, {"image": data.samples().images[3:4]})
    with np.load(tmp_path / "out.npz", allow_pickle=False) as outputs:
        np.testing.assert_array_equal(outputs["logits"], expected)
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["model"], report["machine"], report["matches_reference"]) == ("lenet5", "nano", True)


@pytest.mark.slow
def test_waveforms_of_the_hardware_are_written(compiled, tmp_path):
    done = invoke("simulate", compiled, "--engine", "rtl", "--wave", tmp_path / "run.vcd")
    assert done.exit_code == 0, done.output
    with open(tmp_path / "run.vcd") as wave:
        assert "$version" in wave.read(1000)
    (tmp_path / "run.vcd").unlink()  # it is large, and pytest keeps folders


@pytest.mark.slow
def test_waveforms_show_the_cycles_asked_for(compiled, tmp_path):
    wave = tmp_path / "run.vcd"
    done = invoke("simulate", compiled, "--engine", "rtl", "--wave", wave, "--wave-cycles", "1000:1100")
    assert done.exit_code == 0, done.output
    times = [int(line[1:]) for line in wave.read_text().splitlines() if line.startswith("#")]
    assert (times[0], times[-1]) == (2 * 1008, 2 * 1108 - 1)
    refusal = refused(2, "simulate", compiled, "--engine", "rtl", "--wave", wave, "--wave-cycles", "99000000:")
    assert "not in cycle 99000000" in refusal


def test_a_waveform_of_a_layer_is_written_by_run_with_a_trace_of_measured_times(tmp_path):
    done = invoke("run", "lenet5_accel", "--machine", "nano", "--engine", "rtl", "--wave", tmp_path / "run.fst",
                  "--wave-layers", "1:2", "--wave-scope", "load,array", "--trace", tmp_path / "run.json")
    assert done.exit_code == 0, done.output
    shown = read_waveform(tmp_path / "run.fst")
    assert {value for _, value in shown.changes["TOP.simulated_soc.layer"]} == {1}
    assert (tmp_path / "run.gtkw").is_file()
    trace = json.loads((tmp_path / "run.json").read_text())
    assert trace["otherData"]["times"] == "measured in RTL"


def test_waveforms_that_cannot_be_are_refused_before_anything_runs(tmp_path):
    wave = tmp_path / "run.fst"
    rtl = "run", "lenet5", "--engine", "rtl"
    assert "--engine rtl" in refused(2, "run", "lenet5", "--wave", wave)
    assert "overview, core, port, load" in refused(2, *rtl, "--wave", wave, "--wave-scope", "load,mac")
    assert "--wave FILE" in refused(2, *rtl, "--wave-layers", "1:2")
    assert "'5'" in refused(2, *rtl, "--wave", wave, "--wave-layers", "5")
    assert "ends in .fst or .vcd" in refused(2, *rtl, "--wave", tmp_path / "run.wave")
    assert "both" in refused(2, *rtl, "--wave", wave, "--wave-layers", "1:2", "--wave-cycles", "1:2")
    assert "--jobs" in refused(2, *rtl, "--wave", wave, "--jobs", "2")
    assert not list(tmp_path.iterdir())


def test_the_baseline_is_plain_c_on_the_core_alone(tmp_path):
    (tmp_path / "net.onnx").write_bytes(small_model())
    done = invoke("baseline", tmp_path / "net.onnx", "--json", tmp_path / "report.json")
    assert done.exit_code == 0, done.output
    assert "every layer equal to the integer reference: yes" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report) == {"model", "core", "cycles", "milliseconds", "clock_mhz", "instructions", "macs",
                           "matches_reference", "layers", "energy"}
    assert (report["model"], report["matches_reference"], report["macs"]) == ("net", True, 4 * 8 * 8 * 27)
    assert report["cycles"] > sum(layer["cycles"] for layer in report["layers"]) > 0


@pytest.mark.slow
def test_the_demo_shows_both_models_beside_plain_c(tmp_path):
    done = invoke("demo", "-o", tmp_path / "demo")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("every element is equal") == 2
    assert done.stdout.count("recognised as a 1") == 2
    for name in ("lenet5", "lenet5_accel"):
        report = json.loads((tmp_path / "demo" / f"{name}.json").read_text())
        assert (report["engine"], report["matches_reference"]) == ("rtl", True)
        assert (tmp_path / "demo" / name / "model.c").is_file()


def test_verilog_is_a_package(tmp_path):
    done = invoke("verilog", "--machine", "nano", "--bus", "wishbone", "-o", tmp_path / "verilog")
    assert done.exit_code == 0, done.output
    files = {path.relative_to(tmp_path / "verilog").as_posix() for path in map(Path, done.stdout.split())}
    assert {"README.md", "tilewright.f", "rtl/tilewright_coprocessor.v", "testbench/testbench.v"} <= files
    for name in (tmp_path / "verilog" / "tilewright.f").read_text().split():
        assert "endmodule" in (tmp_path / "verilog" / name).read_text()


def test_the_instructions_are_shown_in_three_forms():
    table, header = invoke("isa"), invoke("isa", "--format", "header")
    listed = json.loads(invoke("isa", "--format", "json").stdout)
    assert [each["mnemonic"] for each in listed["instructions"]] == [each.mnemonic for each in INSTRUCTIONS]
    for each in INSTRUCTIONS:
        assert each.mnemonic in table.stdout
        assert f"#define tw_{each.mnemonic}_" in header.stdout
    conv = next(each for each in listed["instructions"] if each["mnemonic"] == "conv")
    operand = conv["variants"][0]["rs1"]
    assert [field["low"] for field in operand] == [0, 20, 30]
    assert conv["variants"][0]["flags"][0] == "wait_act_ready"


def test_the_doctor_finds_every_tool_here():
    done = invoke("doctor")
    assert done.exit_code == 0, done.output
    for tool in ("Python", "perl", "c++", "verilator", "zig's clang", "Yosys"):
        assert tool in done.stdout


def test_the_doctor_says_how_to_get_what_is_missing(monkeypatch):
    lost = doctor.Finding("perl", "not found", False, "", "install perl")
    extra = doctor.Finding("torch", "not installed", False, "training", "pip install torch")
    monkeypatch.setattr(doctor, "examine", lambda: [lost, extra])
    done = invoke("doctor")
    assert done.exit_code == 1
    assert "MISSING" in done.stdout
    assert "install perl" in done.stdout
    assert "only for training" in done.stdout
    monkeypatch.setattr(doctor, "examine", lambda: [extra])
    assert invoke("doctor").exit_code == 0


def test_every_command_has_help_with_an_example():
    listed = invoke("--help").stdout
    for command in app.registered_commands:
        name = command.name or command.callback.__name__
        assert name in listed
        assert f"Example: tilewright {name}" in " ".join(invoke(name, "--help").stdout.split())


# ---- what does not match


def test_a_difference_ends_with_1_and_names_the_place(tmp_path, monkeypatch):
    real = compare.as_int8

    def spoilt(array):
        wrong = real(array).copy()
        if wrong.size == 84:
            wrong.flat[5] ^= 1
        return wrong

    monkeypatch.setattr(compare, "as_int8", spoilt)
    done = invoke("run", "lenet5", "--json", tmp_path / "report.json")
    assert done.exit_code == 1
    assert "Layer 3 (/fc1/Gemm) is the first that differs from ONNX Runtime" in done.stdout
    assert "at (5, 0, 0) (channel, row, column)" in done.stdout
    assert json.loads((tmp_path / "report.json").read_text())["matches_reference"] is False


# ---- what is refused


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("frobnicate",), "There is no command tilewright frobnicate"),
    (("run",), "Command tilewright run needs MODEL, a file (.onnx) or a built-in network"),
    (("run", "lenet6"), "Model must be an .onnx file or a built-in network, and 'lenet6' is neither; lenet5 is near"),
    (("run", "lenet5", "--machine", "huge"), NO_MACHINE),
    (("verilog", "--machine", "huge", "-o", "x"), NO_MACHINE),
    (("compile", "lenet5"), "Give -o DIR to write the compiled model, or --explain to see only its plan"),
    (("run", "lenet5", "--frobnicate"), "Command tilewright run has no option --frobnicate"),
    (("run", "lenet5", "--input", "none.npz"), "Input file 'none.npz' cannot be read: No such file or directory"),
    (("simulate", "none"), "Compiled model must be a folder written by `tilewright compile`, not 'none'"),
])
def test_bad_arguments_are_refused(arguments, sentence):
    assert refused(2, *arguments).startswith(sentence)


@pytest.mark.parametrize("arguments", [("run", "lenet5", "--engine", "slow"), ("isa", "--format", "xml")])
def test_unknown_values_are_refused_with_those_there_are(arguments):
    sentence = refused(2, *arguments)
    assert arguments[-1] in sentence
    assert arguments[-2] in sentence
    assert ("'rtl', 'fast'" if "run" in arguments else "'table', 'json', 'header'") in sentence


@pytest.mark.parametrize(("array", "sentence"), [
    (IMAGE[0], "must be float32 of shape (1, 1, 32, 32), not float32 of shape (1, 32, 32)"),
    (IMAGE.astype(np.complex64), "must be float32 of shape (1, 1, 32, 32), not complex64"),
    (np.full_like(IMAGE, np.nan), "must hold numbers, not NaN, as at index (0, 0, 0, 0)"),
])
def test_wrong_inputs_are_refused(compiled, tmp_path, array, sentence):
    np.save(tmp_path / "in.npy", array)
    for command in (("run", "lenet5"), ("simulate", compiled)):
        assert sentence in refused(2, *command, "--input", tmp_path / "in.npy")


def test_an_unreadable_input_is_refused(tmp_path):
    (tmp_path / "in.npz").write_bytes(b"PK\x03\x04 and then nothing")
    assert "in.npz' cannot be read" in refused(2, "run", "lenet5", "--input", tmp_path / "in.npz")


@pytest.mark.parametrize("content", [b"", b"not a model", builtin("lenet5").read_bytes()[:5000]])
def test_a_broken_model_is_refused(tmp_path, content):
    (tmp_path / "net.onnx").write_bytes(content)
    assert "odel" in refused(2, "run", tmp_path / "net.onnx")
    assert "odel" in refused(2, "compile", tmp_path / "net.onnx", "-o", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_model_too_new_for_onnx_runtime_is_read_as_of_an_older_opset(tmp_path):
    model = onnx.load(builtin("lenet5"))
    model.opset_import[0].version = onnx.defs.onnx_opset_version()
    onnx.save(model, tmp_path / "net.onnx")
    done = invoke("run", tmp_path / "net.onnx")
    assert done.exit_code == 0, done.output
    assert f"not {onnx.defs.onnx_opset_version()}" in done.output
    assert "every element is equal" in done.output


@pytest.mark.parametrize("name", ["manifest.json", "program.json", "weights.bin", "model.elf", "model.onnx"])
@pytest.mark.parametrize("damage", ["missing", "cut", "changed"])
def test_a_damaged_artefact_is_refused(artefact, name, damage):
    file = artefact / name
    content = file.read_bytes()
    if damage == "missing":
        file.unlink()
    else:
        half = len(content) // 2
        file.write_bytes(content[:half] + (b"" if damage == "cut" else b"\x00" + content[half:]))
    assert "rtefact" in refused(2, "simulate", artefact)


@pytest.mark.parametrize(("change", "sentence"), [
    ({"format_version": 99}, "must have format version 16, not 99"),
    ({"windows": [{"name": "w", "base": 0x8000_0000, "limit": 0x8000_0000, "readable": True, "writable": True}]},
     "Manifest window limit must be in 0x80000001..0x80010340, not 0x80000000"),
    ({"machine": {"name": "base"}}, "Manifest machine must have the fields"),
])
def test_a_manifest_that_lies_is_refused(artefact, change, sentence):
    manifest = json.loads((artefact / "manifest.json").read_text())
    (artefact / "manifest.json").write_text(json.dumps(manifest | change))
    assert sentence in refused(2, "simulate", artefact)


@pytest.mark.parametrize(("field", "value"), [("onnx_name", None), ("onnx_dtype", "float64"), ("onnx_shape", [1, 7])])
def test_a_border_that_is_none_is_refused(artefact, field, value):
    manifest = json.loads((artefact / "manifest.json").read_text())
    manifest["outputs"][0][field] = value
    (artefact / "manifest.json").write_text(json.dumps(manifest))
    assert "Manifest tensor 'logits_QuantizeLinear_Output' must have" in refused(2, "simulate", artefact)


def test_waveforms_of_the_fast_engine_are_refused(compiled, tmp_path):
    assert "--engine rtl" in refused(2, "simulate", compiled, "--wave", tmp_path / "run.vcd")


@pytest.mark.parametrize("option", ["--json", "--output"])
def test_places_where_nothing_can_be_written_are_refused_before_the_run(compiled, tmp_path, option, monkeypatch):
    monkeypatch.setattr(cli_options, "write_file", None)
    sentence = refused(2, "simulate", compiled, option, tmp_path / "none" / "file")
    assert sentence.endswith("must be a folder with room for it")
    assert "cannot be written" in refused(2, "simulate", compiled, option, tmp_path)


@pytest.mark.parametrize("option", ["--json", "--output"])
def test_a_full_disk_is_told(compiled, option):
    done = invoke("simulate", compiled, option, "/dev/full")
    assert done.exit_code == 2
    assert done.stderr == ("tilewright: File '/dev/full' cannot be written: No space left on device; free some space, "
                           "or name a place on another disk.\n")


def test_a_disk_full_of_verilog_is_told(tmp_path, monkeypatch):
    def full(path, content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    sentence = refused(2, "verilog", "--machine", "nano", "-o", tmp_path)
    assert "tilewright_coprocessor.v' cannot be written: No space left on device; free some space" in sentence


@pytest.mark.parametrize("words", [("--target", "baremetal"), ()])
def test_a_disk_that_is_full_when_a_network_is_compiled_is_told(tmp_path, monkeypatch, words):
    write = Path.write_bytes

    def full(path, content):
        if path.is_relative_to(tmp_path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    sentence = refused(2, "compile", "lenet5", *words, "-o", tmp_path / "out")
    assert f"{str(tmp_path / 'out')!r} cannot be written: No space left on device; free some space" in sentence
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_somewhere_else_is_told(monkeypatch):
    def full(*given, **named):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tilewright.hardware.package.package.write_verilog", full)
    assert "No space left on device; free some space, or let TILEWRIGHT_CACHE" in refused(2, "verilog", "-o", "x")


def test_the_installed_command_refuses_in_one_sentence_too():
    done = subprocess.run([sys.executable, "-m", "tilewright", "run", "nothing.onnx"], capture_output=True, text=True,
                          check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tilewright: Model must be an .onnx or .tflite file")
    assert done.stderr.count("\n") == 1


def test_outputs_only_moves_less_and_compares_the_outputs(tmp_path):
    cost = {}
    for given in ((), ("--outputs-only",), ("--outputs-only", "--engine", "cycles")):
        done = invoke("run", "lenet5", *given, "--json", tmp_path / "report.json")
        assert done.exit_code == 0, done.output
        report = json.loads((tmp_path / "report.json").read_text())
        cost[given] = report["cycles"], sum(layer["bytes_written"] for layer in report["layers"])
    kept, alone, predicted = cost.values()
    assert alone == predicted
    assert alone[0] < kept[0]
    assert alone[1] < kept[1]
    assert "1 of 5 layers compared" in invoke("run", "lenet5", "--outputs-only").stdout
