"""After ONNX's official tests: how many passed, and how many are not ours and why; for runs in one process."""

import sys
from collections import Counter

PREFIX = "tests/onnx_backend/test_official.py::OnnxBackend"


def pytest_terminal_summary(terminalreporter):
    official = sys.modules.get("tests.onnx_backend.official")
    ran = Counter(outcome for outcome in ("passed", "failed", "skipped", "error")
                  for report in terminalreporter.stats.get(outcome, []) if report.nodeid.startswith(PREFIX))
    if official is None or not ran:
        return
    cases = official.cases()
    counts = official.counts()
    covered = set().union(*(case.operators for case in cases if case.reason is None)) & official.OPERATORS
    terminalreporter.section("ONNX's official backend tests")
    terminalreporter.write_line(f"{len(cases)} tests: {ran['passed']} passed, "
                                f"{sum(ran.values()) - ran['passed']} not, {sum(counts.values())} excluded")
    terminalreporter.write_line(f"{len(covered)} of our {len(official.OPERATORS)} operators covered")
    for reason, count in counts.most_common():
        details = Counter(word for case in cases if case.reason == reason and case.detail
                          for word in case.detail.split(", "))
        terminalreporter.write_line(f"{count:5} {reason}")
        if details:
            listed = ", ".join(f"{word} ({number})" for word, number in sorted(details.items()))
            terminalreporter.write_line(f"      {listed}")
