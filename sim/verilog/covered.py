"""Verilog of the coprocessor for counting coverage, without points that are not of the design but of its tools."""

import re

__all__ = ["COVERAGE_FLAGS", "COVERED_FILES", "with_plain_toggles"]

COVERAGE_FLAGS = ("--coverage-line", "--coverage-toggle")

COVERED_FILES = """\
`verilator_config
coverage_off -file "*.sv"
"""
"""Cores and harness are left out: the coprocessor alone is not SystemVerilog."""

_UNNAMED = re.compile(r"\\(?=\$)")
_EMPTY = re.compile(r"^ *if \(\\\S+ \) begin end\n", re.MULTILINE)


def with_plain_toggles(text: str) -> str:
    """Return Verilog of `verilog_of` in which Verilator counts what is in the design alone.

    It counts no toggles of signals without a name (``$12``), which Amaranth puts between those with one, and no branch
    of the empty ``if`` that Yosys puts in front of each process, so that other simulators run it at time 0.
    """
    return _UNNAMED.sub(r"\\_", _EMPTY.sub("", text))
