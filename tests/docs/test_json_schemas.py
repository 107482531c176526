"""The schemas of docs/schema are those of real files: every key that is written is named, and nothing else passes."""

import copy
import json
from dataclasses import asdict, fields, replace

import jsonschema
import numpy as np
import pytest

from tests.docs.pages import ROOT
from tests.support.float_models import classifier
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_file, emit_artefact
from tilewright.energy.imported_power import ImportedPower
from tilewright.isa.machine import Machine
from tilewright.models import builtin, data
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.session import InferenceSession

SCHEMAS = {path.name.removesuffix(".schema.json"): json.loads(path.read_text())
           for path in (ROOT / "docs" / "schema").iterdir()}
POWER = ImportedPower(file="power.rpt", tool="a tool", device="a device", static_w=0.1, dynamic_w=0.2, clock_mhz=50.0)


def valid(name, content):
    """Hold a file's content, as JSON has it, to a schema."""
    jsonschema.Draft202012Validator(SCHEMAS[name]).validate(json.loads(json.dumps(content)))


def concatenated():
    """Return a model whose layers write into parts of one tensor, some of it unsigned."""
    builder = ModelBuilder("qdq", seed=2, dtype=np.uint8, zero_point=None)
    x = builder.input((1, 4, 8, 8))
    parts = [builder.conv(x, 4, kernel=3, pads=(1, 1, 1, 1)), builder.conv(x, 8, kernel=1)]
    builder.output(builder.concat(parts, np.float32(0.1)), integer=True)
    return builder.finish()


@pytest.fixture(scope="module")
def report():
    """Return a report of LeNet-5 with all that options add to it."""
    session = InferenceSession(builtin("lenet5"), "base")
    session.run(None, {"image": data.samples().images[:1]})
    return replace(session.report, imported=POWER).to_json() | {"plan": session.explanation.to_json()}


def test_the_schemas_are_schemas_and_allow_no_key_that_they_do_not_name():
    assert set(SCHEMAS) == {"report", "manifest"}
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert all(each.get("additionalProperties") is not None for each in objects(schema))


def objects(schema):
    """Yield every part of a schema that describes an object."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for each in schema.values():
            yield from objects(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from objects(each)


def test_reports_are_as_their_schema_says(report):
    valid("report", report)
    session = InferenceSession(classifier().SerializeToString(), "nano")
    assert session.explanation.layers[0].algorithm == "core"
    session.run(None, {each.name: [[[[0.5] * 10] * 12] * 3] for each in session.get_inputs()})
    assert session.report.core_share.causes
    valid("report", session.report.to_json() | {"plan": session.explanation.to_json()})


def test_reports_with_dram_and_stalls_are_too():
    session = InferenceSession(builtin("lenet5"), design_of("nano", memory="dram=ddr3l-1600x16,stalls=5,seed=2"))
    session.run(None, {"image": data.samples().images[:1]})
    found = session.report.to_json()
    assert set(found["memory"]) == set(SCHEMAS["report"]["$defs"]["memory"]["properties"])
    valid("report", found)


@pytest.mark.parametrize("model", [builtin("lenet5_qoperator").read_bytes, concatenated], ids=["lenet5", "concat"])
def test_manifests_are_as_their_schema_says(model, tmp_path):
    (tmp_path / "net.onnx").write_bytes(model())
    emit_artefact(compile_file(tmp_path / "net.onnx", Machine()), tmp_path / "net.onnx", tmp_path / "out")
    valid("manifest", json.loads((tmp_path / "out" / "manifest.json").read_text()))


def test_every_key_of_the_schema_is_written(report):
    """A key that nothing writes any more, or that has become rare, is no part of the contract."""
    assert set(report) | {"statistics"} == set(SCHEMAS["report"]["properties"])
    assert set(report["layers"][0]) == set(SCHEMAS["report"]["properties"]["layers"]["items"]["properties"])
    machine = SCHEMAS["manifest"]["properties"]["machine"]["properties"]
    assert set(machine) - {"extension"} == {each.name for each in fields(Machine)} == set(asdict(Machine()))


@pytest.mark.parametrize("change", [
    lambda report: report.pop("cycles"), lambda report: report.update(cycle=1),
    lambda report: report.update(cycles="1"), lambda report: report["layers"][0].pop("stalls"),
    lambda report: report["energy"]["components"]["array"].pop("uj"), lambda report: report.update(engine="quick"),
])
def test_what_is_no_report_is_refused(report, change):
    changed = copy.deepcopy(report)
    change(changed)
    with pytest.raises(jsonschema.ValidationError):
        valid("report", changed)
