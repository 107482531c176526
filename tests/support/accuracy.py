"""A report of an evaluation of four images, for tests of what is said of one."""

from typing import Any

import numpy as np

from tilewright.isa.machine import preset
from tilewright.runtime.accuracy.accuracy_report import AccuracyReport
from tilewright.runtime.accuracy.answers import Answers, Column
from tilewright.runtime.design.design import Design

__all__ = ["report"]

LABELS = np.array([0, 1, 2, 3])
FLOAT = np.array([[0, 5, 6, 7, 8], [1, 5, 6, 7, 8], [2, 5, 6, 7, 8], [4, 5, 6, 7, 3]], np.int32)
QUANTISED = np.array([[0, 5, 6, 7, 8], [5, 1, 6, 7, 8], [2, 5, 6, 7, 8], [4, 5, 6, 7, 8]], np.int32)


def report(leave_out: tuple[str, ...] = (), **changed: Any) -> AccuracyReport:
    """Return the report, some columns left out and fields changed: those of `AccuracyReport` and of `Answers`."""
    top = {Column.FLOAT: FLOAT, Column.QUANTISED: QUANTISED, Column.HARDWARE: QUANTISED}
    answers = Answers(top={column: classes for column, classes in top.items() if column not in leave_out},
                      equal=changed.pop("equal", np.ones(4, bool)), off=changed.pop("off", np.zeros(4)),
                      cycles=changed.pop("cycles", np.zeros(0, np.int64)))
    fields = {"model": "net", "output": "scores", "classes": 10, "engine": "values",
              "design": Design(machine=preset("base")), "answers": answers, "labels": LABELS, "declared": False,
              "untrusted": "", "resumed": 0, "evaluated_now": 4, "seconds": 2.0}
    return AccuracyReport(**(fields | changed))
