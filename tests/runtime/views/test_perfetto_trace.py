"""A trace is what Perfetto reads: named tracks, slices that do not overlap, pairs that close, counters that return."""

import json
from dataclasses import replace

import pytest

from tilewright.compiler.network.options import BEST
from tilewright.errors import InputError
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_run import predict_model
from tilewright.runtime.views.perfetto_trace import perfetto_trace
from tilewright.tools.progress import Silence

_KEYS = {"M": {"name", "pid", "args"}, "X": {"name", "pid", "tid", "ts", "dur", "args"},
         "b": {"name", "pid", "tid", "ts", "cat", "id"}, "e": {"name", "pid", "tid", "ts", "cat", "id"},
         "C": {"name", "pid", "ts", "args"}}


@pytest.fixture(scope="module", params=["predicted by the cycle model", "measured in RTL"])
def origin(request):
    return request.param


@pytest.fixture(scope="module")
def run(origin):
    source = find_model("lenet5_accel", Silence())
    if origin == "measured in RTL":
        return run_model(source, design_of("nano").machine, "rtl", None)
    return predict_model(source, design_of("base"), BEST, Silence())


@pytest.fixture(scope="module")
def events(run, origin):
    trace = json.loads(json.dumps(perfetto_trace(run), allow_nan=False))
    assert trace["displayTimeUnit"] == "ns"
    assert trace["otherData"]["times"] == origin
    (name,) = (each["args"]["name"] for each in trace["traceEvents"] if each["name"] == "process_name")
    assert origin in name
    return trace["traceEvents"]


def cycle(microseconds):
    return round(1000 * microseconds)


def test_every_event_has_the_keys_that_its_phase_needs_and_lies_in_the_run(run, events):
    for each in events:
        assert _KEYS[each["ph"]] <= each.keys(), each
        assert 0 <= cycle(each.get("ts", 0)) <= cycle(each.get("ts", 0) + each.get("dur", 0)) <= run.report.cycles


def test_tracks_have_names_and_slices_of_a_track_do_not_overlap(events):
    names = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    assert list(names.values()) == ["layers", "tiles", "core", "load", "array", "post", "store"]
    free = dict.fromkeys(names, 0)
    for each in (each for each in events if each["ph"] == "X"):
        if names[each["tid"]] == "core":
            continue
        assert free[each["tid"]] <= cycle(each["ts"]), each
        free[each["tid"]] = cycle(each["ts"] + each["dur"])
    assert all(free[tid] for tid, name in names.items() if name not in ("tiles", "core"))


def test_layers_are_as_long_as_the_report_says(run, events):
    layers = [each for each in events if each["ph"] == "X" and each["tid"] == 1]
    assert [(each["name"], cycle(each["dur"])) for each in layers] == [
        (layer.name, layer.cycles) for layer in run.report.layers]


def test_tiles_begin_and_end_once_each(events):
    tiles = {}
    for each in (each for each in events if each["ph"] in "be"):
        tiles.setdefault(each["id"], []).append((each["ph"], cycle(each["ts"])))
    assert len(tiles) > 5
    for (first, begin), (second, end) in tiles.values():
        assert (first, second) == ("b", "e")
        assert begin < end


def test_commands_say_their_fields_and_their_line_of_the_source(events):
    found = [each for each in events if each["ph"] == "X" and "." in each["name"] and "model.c" in each["args"]]
    assert {each["name"] for each in found} >= {"conv23.run", "act.run", "sta.memory", "lda.blocked", "ldw.main"}
    for each in found:
        number, _, text = each["args"]["model.c"].partition(": ")
        assert int(number) > 0
        assert f"tw_{each['name'].replace('.', '_')}(" in text
        assert "flags" in each["args"]


def test_counters_are_there_and_queues_empty_in_the_end(run, events):
    last, most = {}, {}
    for each in (each for each in events if each["ph"] == "C"):
        value = last[each["name"]] = each["args"]["value"]
        most[each["name"]] = max(value, most.get(each["name"], 0))
    assert len(last) == 9
    for name, value in most.items():
        assert value > 0, name
        assert last[name] == 0 or name.startswith("bus"), name
    assert all(value <= run.job.machine.bus_bytes for name, value in most.items() if name.startswith("bus"))
    depth = run.job.machine.queue_depth
    assert all(value <= depth for name, value in most.items() if name.startswith("queue"))


def test_commands_lie_where_the_times_are(run, events):
    begun = {("array", cycle(each["ts"])) for each in events if each["ph"] == "X" and each["name"] == "conv23.run"}
    times = run.times
    wanted = {("array", times.begun[number]) for number, (_, command) in enumerate(run.job.program.commands())
              if (command.instruction.mnemonic, command.variant.name) == ("conv23", "run")}
    assert begun == wanted


def test_a_run_without_times_has_no_trace(run):
    with pytest.raises(InputError):
        perfetto_trace(replace(run, times=None))
