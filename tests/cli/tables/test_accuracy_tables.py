"""The table of an evaluation, and the lines below it, say what the report holds."""

from io import StringIO

import numpy as np
from rich.console import Console

from tests.support.accuracy import report
from tilewright.cli.tables.accuracy_tables import accuracy_table, summary


def printed(found):
    out = Console(width=160, file=StringIO())
    out.print(accuracy_table(found))
    return out.file.getvalue()


def test_a_row_for_each_that_answers():
    text = printed(report())
    (row,) = [line for line in text.splitlines() if "float model" in line]
    assert "75.00 %" in row
    assert "100.00 %" in row
    (row,) = [line for line in text.splitlines() if "hardware" in line]
    assert [word for word in row.split() if word.isdigit()] == ["3", "4"]


def test_a_few_classes_have_no_top_5_and_images_without_labels_no_accuracy():
    assert "top-5" not in printed(report(classes=4))
    assert "%" not in printed(report(labels=None))


def test_images_that_part_are_named_up_to_a_limit():
    assert any("float and quantised" in line and line.endswith(" 1") for line in summary(report()))
    many = report(labels=None, equal=np.zeros(4, bool), off=np.array([0.5, 0, 0.25, 0]))
    assert any("in 4 images" in line and "0.5" in line and "0, 1, 2, 3" in line for line in summary(many))


def test_floats_that_are_nearly_equal_are_not_called_equal():
    assert any("bit for bit" in line for line in summary(report(engine="fast")))
    assert not any("bit for bit" in line for line in summary(report(engine="fast", off=np.array([0, 1e-7, 0, 0]))))


def test_what_limits_a_comparison_is_said():
    def lines(**changed):
        return "\n".join(summary(report(**changed)))

    assert "--float-model" in lines(leave_out=("float",))
    assert "--float-model" not in lines()
    assert "saturates" in lines(leave_out=("float", "quantised"), untrusted="ONNX Runtime saturates")
    assert "--engine fast" in lines()
    assert "on base: 25, 10 to 40" in lines(engine="fast", cycles=np.array([10, 20, 30, 40]))
    assert "--fresh" in lines(resumed=2)
