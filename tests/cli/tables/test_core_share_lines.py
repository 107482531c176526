"""``check`` and ``run`` begin with the core's share, and one line for each of its causes where it is large."""

import pytest

from tests.cli.test_app import invoke
from tests.support.float_models import FloatBuilder
from tilewright.cli.tables.core_share_lines import amount, core_share_lines, percent
from tilewright.runtime.execution.core_share import CorePart, core_share

PARTS = [CorePart("up", "Resize", "its mode is linear", 800_000), CorePart("soft", "Softmax", "no such", 90_000),
         CorePart("up2", "Resize", "its mode is linear", 1_000)]


def test_each_cause_has_a_line_with_its_layers_cycles_reason_and_way_out():
    first, *lines = core_share_lines(core_share(PARTS, 1_000_000))
    assert first == "Core: 89 % of 1.0 M cycles, in 3 layers"
    assert len(lines) == 2
    for text in ("up and 1 more (Resize)", "801 k cycles", "its mode is linear: "):
        assert text in lines[0]
    assert "soft (Softmax)" in lines[1]


def test_small_causes_are_counted_together():
    parts = [CorePart(f"layer{index}", f"Op{index}", "no such", 1000 - index) for index in range(8)]
    lines = list(core_share_lines(core_share(parts, 8000)))
    assert len(lines) == 1 + 5 + 1
    assert "in 3 layers" in lines[-1]


def test_a_small_share_takes_one_line():
    assert len(list(core_share_lines(core_share(PARTS, 10**8)))) == 1
    assert len(list(core_share_lines(core_share([], 10**8)))) == 1


@pytest.mark.parametrize(("count", "text"), [(999, "999"), (1000, "1.0 k"), (36_300_000, "36.3 M"), (10**11, "100 G")])
def test_amounts_have_two_or_three_digits(count, text):
    assert amount(count) == text


@pytest.mark.parametrize(("share", "text"), [(0.004, "0.4 %"), (0.099, "9.9 %"), (0.1, "10 %"), (1.0, "100 %")])
def test_small_shares_have_a_decimal(share, text):
    assert percent(share) == text


@pytest.mark.parametrize("command", ["check", "run"])
def test_the_commands_begin_with_it(command, tmp_path):
    builder = FloatBuilder()
    model = tmp_path / "soft.onnx"
    model.write_bytes(builder.finish(builder.node("Softmax", builder.input((1, 40)))).SerializeToString())
    done = invoke(command, model, "--float", "--json", tmp_path / "found.json")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Core: ")
    assert "(Softmax): " in done.stdout.splitlines()[1]
