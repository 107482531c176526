"""Verilator's library, compiled while something else is done, and taken as it is by the model's makefile."""

import subprocess

import pytest

from tilewright.isa.machine import preset
from tilewright.sim.verilator.build import COMPILER_FLAGS, build_simulator
from tilewright.sim.verilator.runtime_library import flags_of_compiled_library, library_compiled_meanwhile


def test_objects_are_there_after_the_body(tmp_path):
    with library_compiled_meanwhile(tmp_path / "model", COMPILER_FLAGS):
        pass
    assert {path.name for path in (tmp_path / "model").glob("*.o")} == {"verilated.o", "verilated_threads.o"}
    assert flags_of_compiled_library(tmp_path / "model") == (
        "-MAKEFLAGS", "-o verilated.o", "-MAKEFLAGS", "-o verilated_threads.o")


def test_the_next_model_takes_the_objects_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    with library_compiled_meanwhile(tmp_path / "first", COMPILER_FLAGS, ["verilated_threads"]):
        pass
    monkeypatch.setattr(subprocess, "Popen", None)
    with library_compiled_meanwhile(tmp_path / "second", COMPILER_FLAGS, ["verilated_threads"]):
        pass
    first, second = (tmp_path / name / "verilated_threads.o" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    with pytest.raises(TypeError), library_compiled_meanwhile(tmp_path / "other", "-DOTHER", ["verilated_threads"]):
        pass


def test_what_does_not_compile_is_left_to_the_model(tmp_path):
    with library_compiled_meanwhile(tmp_path / "model", "-std=c++1"):
        pass
    assert flags_of_compiled_library(tmp_path / "model") == ()


def test_a_body_that_fails_ends_the_compilation(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    with pytest.raises(KeyError), library_compiled_meanwhile(tmp_path / "model", COMPILER_FLAGS):
        raise KeyError
    assert flags_of_compiled_library(tmp_path / "model") == ()


def test_the_model_does_not_compile_it_again():
    log = (build_simulator(preset("nano")).parent / "build.log").read_text()
    assert "Vtop___024root" in log
    assert "verilated.cpp" not in log
