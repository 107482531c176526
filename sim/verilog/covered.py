"""Verilog of the coprocessor for counting coverage: what Amaranth only puts between signals with names is left out."""

import re

__all__ = ["COVERAGE_FLAGS", "COVERED_FILES", "with_plain_toggles"]

COVERAGE_FLAGS = ("--coverage-line", "--coverage-toggle")

COVERED_FILES = """\
`verilator_config
coverage_off -file "*.sv"
"""
"""Cores and harness are left out: the coprocessor alone is not SystemVerilog."""

_UNNAMED = re.compile(r"\\(?=\$)")


def with_plain_toggles(text: str) -> str:
    """Return Verilog of `verilog_of` in which Verilator counts no toggles of signals without a name (``$12``)."""
    return _UNNAMED.sub(r"\\_", text)
