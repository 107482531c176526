"""Energy on an FPGA comes from a vendor's report, and from nothing that only looks like one."""

import json
from dataclasses import replace

import pytest

from tests.runtime.execution.test_report import JOB, execution
from tilewright.cli.tables.report_tables import report_text
from tilewright.energy.imported_power import read_power
from tilewright.errors import InputError
from tilewright.isa.machine import MemoryTiming
from tilewright.runtime.execution.accounting import account

VIVADO = """\
Copyright 1986-2022 Xilinx, Inc. All Rights Reserved.
---------------------------------------------------------------------------------
| Tool Version     : Vivado v.2022.1 (lin64) Build 3526262 Mon Apr 18 15:47:01 MDT 2022
| Design           : tilewright
| Device           : xc7a100tcsg324-1
| Design State     : routed
---------------------------------------------------------------------------------

1. Summary
----------

+--------------------------+--------------+
| Total On-Chip Power (W)  | 0.412        |
| Design Power Budget (W)  | Unspecified* |
| Dynamic (W)              | 0.315        |
| Device Static (W)        | 0.098        |
| Confidence Level         | Medium       |
+--------------------------+--------------+

2.2 Clock Constraints
---------------------

+-------+--------+-----------------+
| Clock | Domain | Constraint (ns) |
+-------+--------+-----------------+
| clk   | clk    |            12.5 |
+-------+--------+-----------------+

3.1 By Hierarchy
+------------+-----------+
| Name       | Power (W) |
+------------+-----------+
| tilewright |     0.315 |
+------------+-----------+
"""
LATTICE = {"tool": "Power Calculator", "device": "LFE5U-85F", "static_w": 0.09, "dynamic_w": 0.21, "clock_mhz": 80}


@pytest.fixture
def report(tmp_path):
    """Return a function from the text of a power report to its file."""
    def write(text):
        path = tmp_path / "power.rpt"
        path.write_text(text)
        return path
    return write


def test_vivados_report(report):
    power = read_power(report(VIVADO))
    assert (power.device, power.static_w, power.dynamic_w) == ("xc7a100tcsg324-1", 0.098, 0.315)
    assert power.tool.startswith("Vivado v.2022.1")
    assert power.clock_mhz == pytest.approx(80)
    # 0.098 W and 0.315 W for 8,000 cycles of 12.5 ns.
    assert power.energy_uj(8000) == (pytest.approx(9.8), pytest.approx(31.5))


def test_another_tools_figures_as_json(report):
    power = read_power(report(json.dumps(LATTICE)))
    assert power.energy_uj(80) == (pytest.approx(0.09), pytest.approx(0.21))


def test_a_run_says_it_with_its_source(report):
    run = account(JOB, "fast", MemoryTiming(), execution())
    assert run.to_json()["imported_power"] is None
    assert "xc7a" not in report_text(run)
    with_power = replace(run, imported=read_power(report(VIVADO)))
    found = with_power.to_json()["imported_power"]
    assert found["total_uj"] == pytest.approx(0.413 * run.cycles / 80)
    assert found["file"] == "power.rpt"
    assert "energy on xc7a100tcsg324-1: 0.671 µJ (0.159 static, 0.512 dynamic) at 80 MHz, from power.rpt of Vivado" \
        in report_text(with_power)


@pytest.mark.parametrize(("text", "message"), [
    ("", "must be JSON or the text of Vivado's report_power, and has no row 'Total On-Chip Power"),
    (VIVADO.replace("| Dynamic (W) ", "| Dynamo (W) "), r"has no row 'Dynamic \(W\)'"),
    (VIVADO.replace("0.315        |", "NA           |"), r"must have a number as 'Dynamic \(W\)', not 'NA'"),
    (VIVADO.replace("0.412", "0.512"), "dynamic and static power that add up to 0.512 W, not 0.315 and 0.098"),
    (VIVADO.replace("| clk   | clk    |            12.5 |\n", ""), "must have one clock .*, not 0: give the figures"),
    (VIVADO.replace("| clk   | clk    |            12.5 |\n", "| clk   | clk    |            12.5 |\n" * 2), "not 2:"),
    (VIVADO.replace("12.5", "   0"), "must have a clock with a period, not 0.0 ns"),
    (VIVADO.replace("12.5", " nan"), "must have a number, not negative, as clock_mhz, not nan"),
    (json.dumps(LATTICE)[:-1], "must be JSON, as it begins with a brace"),
    (json.dumps({**LATTICE, "total_w": 1}), "must have the keys tool, device, static_w, dynamic_w, clock_mhz, not "),
    (json.dumps({**LATTICE, "dynamic_w": -1}), "must have a number, not negative, as dynamic_w, not -1"),
    (json.dumps({**LATTICE, "dynamic_w": "1"}), "must have a number, not negative, as dynamic_w, not '1'"),
    (json.dumps({**LATTICE, "clock_mhz": 0}), "must have a clock and a power above zero"),
    (json.dumps({**LATTICE, "device": " "}), "must state its device as text, not ' '"),
])
def test_a_malformed_report_is_refused_in_a_sentence(report, text, message):
    with pytest.raises(InputError, match=rf"^Power report '.*power\.rpt' .*{message}"):
        read_power(report(text))


def test_a_missing_or_binary_report_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none.rpt' cannot be read"):
        read_power(tmp_path / "none.rpt")
    (tmp_path / "binary.rpt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"binary.rpt' cannot be read"):
        read_power(tmp_path / "binary.rpt")
