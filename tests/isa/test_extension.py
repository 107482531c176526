"""Extensions: what a file may say, and machines that have one."""

import copy
import pickle
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa.assembler import command
from tilewright.isa.emit_c import header
from tilewright.isa.encoding import EXTENSION, Field
from tilewright.isa.extension import BufferUnit, ExtensionError, PostStage, extended, extension_of, load_extension
from tilewright.isa.lacking import variants_of
from tilewright.isa.semantics.command_errors import UnitMissingError
from tilewright.isa.semantics.coprocessor_state import CoprocessorState
from tilewright.isa.semantics.execute_command import execute_command

PRELU = Path(__file__).parents[2] / "examples/extensions/prelu.py"
ARGMAX = PRELU.with_name("argmax.py")
BASE = WINOGRAD_MACHINES["base"]


class Unit:
    LATENCY = 1


def stage(**changes):
    given = {"mnemonic": "mine", "effect": "", "operators": ("PRelu",), "parameter_bytes": 4,
             "fit": lambda *_: None, "compute": lambda *_: None, "component": Unit}
    return PostStage(**(given | changes))


@pytest.mark.parametrize("changes", [
    {"mnemonic": "conv"}, {"mnemonic": "Mine"}, {"mnemonic": "two words"}, {"parameter_bytes": 3}, {"operators": ()},
    {"component": object}, {"fields": ((Field("a", 20, ""),), ())}, {"fields": ((), (Field("a", 33, ""),))},
    {"fields": ((Field("a", 1, ""),), (Field("a", 1, ""),))}, {"fields": ((Field("enable", 1, ""),), ())}])
def test_a_stage_that_does_not_fit_the_table_is_refused(changes):
    with pytest.raises(ExtensionError):
        stage(**changes)


@pytest.mark.parametrize("changes", [
    {"result_bytes": 0}, {"result_bytes": 5}, {"result_bytes": "1"}, {"fields": (Field("a", 21, ""),)},
    {"fields": (Field("items", 1, ""),)}, {"operators": ()}, {"mnemonic": "lda"}, {"component": object}])
def test_a_unit_that_does_not_fit_the_table_is_refused(changes):
    given = {"mnemonic": "mine", "effect": "", "operators": ("ArgMax",), "result_bytes": 1, "fit": lambda *_: None,
             "compute": lambda *_: None, "component": Unit}
    assert BufferUnit(**given).latency == 1
    with pytest.raises(ExtensionError):
        BufferUnit(**(given | changes))


def test_an_entry_point_is_an_extension_by_name(tmp_path, monkeypatch):
    package = tmp_path / "their_argmax.py"
    package.write_text(ARGMAX.read_text())
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("tilewright.isa.extension.entry_points", lambda group: [
        EntryPoint("segments", "their_argmax", group), EntryPoint("lost", "their_lost_module", group)])
    found = load_extension("segments")
    assert found.mnemonic == "argmax"
    assert pickle.loads(pickle.dumps(found)) == found
    for name in ("another", "lost"):
        with pytest.raises(ExtensionError, match=name):
            load_extension(name)


def test_operands_have_the_names_of_the_instruction_s_own():
    own = load_extension(ARGMAX)
    assert own.named({"base": 5, "items": 2, "item_bytes": 21, "own": 1}) == {
        "base": 5, "items": 2, "item_bytes": 21, "least": 1}


@pytest.mark.parametrize("text", ["", "1 / 0", "EXTENSION = 3", "syntax error"])
def test_a_file_without_an_extension_is_refused_by_name(tmp_path, text):
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(ExtensionError, match=str(path)):
        load_extension(path)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ExtensionError):
        load_extension(tmp_path / "none.py")


def test_an_extended_machine_is_a_value():
    one, other = (extended(BASE, load_extension(PRELU)) for _ in range(2))
    assert one == other == copy.deepcopy(one) == pickle.loads(pickle.dumps(one))
    assert hash(one) == hash(other)
    assert one != BASE
    assert extension_of(BASE) is None


def test_a_stage_needs_the_table_slots():
    with pytest.raises(ExtensionError):
        extended(replace(BASE, value_tables=False), load_extension(PRELU))


def test_an_extended_machine_keeps_the_units_left_out():
    machine = replace(BASE, array="plain", residual_adder=False, max_pooling=False)
    own = extended(machine, load_extension(PRELU))
    assert extension_of(own) is not None
    assert variants_of(own)[:-1] == variants_of(machine)
    assert variants_of(own)[-1][0] is EXTENSION


def test_its_content_tells_extensions_apart(tmp_path):
    path = tmp_path / "prelu.py"
    path.write_text(PRELU.read_text() + "\n# another\n")
    assert load_extension(path) != load_extension(PRELU)


def test_fields_survive_the_operands():
    own = load_extension(PRELU)
    settings = {"zero_in": -3, "zero_out": 127, "slope": 12345}
    assert own.settings(own.operands(settings)) == settings


def test_a_machine_without_one_refuses_its_command():
    with pytest.raises(UnitMissingError):
        execute_command(CoprocessorState(BASE), None, command("extension", "set_stage", enable=1))


def test_without_an_extension_the_header_knows_none():
    assert "set_stage" not in header()
    assert "tw_prelu_set_stage" in header(load_extension(PRELU))
