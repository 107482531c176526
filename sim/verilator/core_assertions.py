"""CV32E40X's own assertions, from its wheel, rewritten for Verilator: for simulators that check them.

The wheel binds them in ``cv32e40x_wrapper.sv`` to a core of its own, beside a tracer. Here they are bound to the core
of ``host_core.sv``; `LEFT_OUT` says which are not.
"""

import re
from pathlib import Path

import pythondata_cpu_cv32e40x

__all__ = ["LEFT_OUT", "write_core_assertions"]

_CORE = Path(pythondata_cpu_cv32e40x.data_location)

LEFT_OUT = {
    "rvfi": "belongs to the tracer, which is not there",
    "clic_int_controller": "of an interrupt controller that the core has not",
    "sequencer": "of a unit that the core has not",
    "mpu": "has cover groups, which Verilator does not take, and the core has no regions of memory to protect",
    "mult": "has sequences with local variables, which Verilator does not take",
}
"""Files of assertions that are not bound, and why."""

# What Verilator 5.48 does not take, in words of the same meaning, or of less. A sequence of two cycles in front of an
# implication is the second with the first in its past; what must hold until something happens is looked at in its first
# cycle only; a modport of an interface is looked up from the core downwards.
_REWRITTEN = (
    (re.compile(r"\(\s*(!?irq_req_ctrl)\s+##1\s+(.*?)\s+\|->", re.DOTALL), r"($past(\1) && \2 |->"),
    (re.compile(r"##1 (\$fell\(fencei_flush_req_o\))"), r"\1"),  # low from reset on
    # Does not hold with CV-X-IF: a CSR access, which is offered there too, enables two units once it is rejected.
    (re.compile(r"a_functional_unit_enable_onehot\s*:.*?`uvm_error\([^\n]*", re.DOTALL), ""),
    # Sequences of unknown length, all of single steps, which nothing here does.
    (re.compile(r"a_single_step_(?:no_irq|with_irq\w*|retire)\s*:.*?`uvm_error\([^\n]*", re.DOTALL), ""),
    (re.compile(r"\s+until(?:_with)?\s+(\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\))"), ""),
    (re.compile(r"if_c_obi\.monitor\s+\w+,"), ""),
    (re.compile(r"(?<![\w.])(m_c_obi_(?:data|instr)_if)\."), r"core.\1."),
)

_REPORT = """\
// The reports of the core's assertions, without the library that they were written for.
`define uvm_error(ID, TEXT) begin $error("%s: %s", ID, TEXT); end
`define uvm_info(ID, TEXT, LEVEL) begin end
`define uvm_warning(ID, TEXT) begin end
package uvm_pkg; endpackage
"""

_BIND = re.compile(r"bind\s+(\w+)\s*:\s*[\w.]+\s+(cv32e40x_(\w+)_sva)\b(.*?;)", re.DOTALL)


def write_core_assertions(folder: Path) -> list[Path]:
    """Write the assertions and what binds them to ``folder``; return the files in the order to read them in."""
    report = folder / "assertion_reports.sv"
    report.write_text(_REPORT)
    (folder / "uvm_macros.svh").write_text("")
    binds, files = [], [report]
    wrapper = (_CORE / "bhv/cv32e40x_wrapper.sv").read_text()
    for target, module, name, rest in _BIND.findall(re.sub(r"/\*.*?\*/", "", wrapper, flags=re.DOTALL)):
        if name in LEFT_OUT:
            continue
        text = (_CORE / f"sva/{module}.sv").read_text()
        for old, new in _REWRITTEN:
            text = old.sub(new, text)
        files.append(folder / f"{module}.sv")
        files[-1].write_text(text)
        # The wheel calls its core core_i.
        rest = re.sub(r"\.m_c_obi_\w+_if\s*\(core_i\.\w+\),", "", rest).replace("core_i.", "core.")
        binds.append(f"bind {target} {module}{rest}\n")
    files.append(folder / "assertion_binds.sv")
    files[-1].write_text("\n".join(binds))
    return files
