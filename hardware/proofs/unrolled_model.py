"""A design with properties as a transition system, unrolled step by step for a solver: Bitwuzla's wheel."""

import hashlib
import re
import subprocess
import time
from collections.abc import Sequence

import bitwuzla

from tilewright.errors import ToolError
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder, yosys_command

__all__ = ["ProofError", "UnrolledModel", "transition_system"]

# What becomes of the design before the properties are read, and of both together. Registers of the design keep their
# reset values, unless `{start}` takes them away, for then every state is one to begin in. Memories become registers;
# `{exposed}` makes ports of signals inside, for invariants. A design may have the module `anything`.
_SCRIPT = """\
read_verilog <<design
{design}
design
read_verilog -formal <<anything
module anything #(parameter WIDTH = 1) (output [WIDTH-1:0] o);
  assign o = $anyseq;
endmodule
anything
hierarchy -top dut
proc
memory_dff
memory_map
flatten
{start}
{exposed}
opt_clean
read_verilog -sv -formal <<properties
{properties}
properties
hierarchy -top top
proc
flatten
opt -full
async2sync
formalff -clk2ff -ff2anyinit
chformal -lower
dffunmap
opt -fast
setundef -anyseq
opt_clean
write_smt2 -wires -stbv
"""
_ANY_START = "setattr -unset init w:*"
_ASSERT = re.compile(r"^; yosys-smt2-assert (\d+) (\S+)", re.MULTILINE)
_COVER = re.compile(r"^; yosys-smt2-cover (\d+) (\S+)", re.MULTILINE)


class ProofError(ToolError):
    """A property could not be put to the solver, or no answer came within the time given."""


def transition_system(design: str, properties: str, *, exposed: Sequence[str] = (), any_start: bool = False) -> str:
    """Return ``design``, Verilog of a module ``dut``, and ``properties``, a module ``top`` around it, in SMT-LIB.

    Parameters
    ----------
    design, properties
        Sources.
    exposed
        Signals inside the design that are ports of it for the properties, as patterns of Yosys.
    any_start
        The registers of the design, not those of the properties, begin with any value.

    Raises
    ------
    ProofError
        If Yosys refuses one of them.
    """
    script = _SCRIPT.format(design=design, properties=properties, start=_ANY_START if any_start else "",
                            exposed="\n".join(f"expose dut/w:{each}" for each in exposed))
    kept = cache_folder() / "proofs" / f"{hashlib.sha256(script.encode()).hexdigest()}.smt2"
    if kept.exists():
        return kept.read_text()
    done = subprocess.run([*yosys_command(), "-q", "-"], input=script, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.rstrip().endswith("; end of yosys output"):
        raise ProofError(f"Yosys could not turn a design into a transition system: {done.stderr.strip()[-500:]}")
    write_if_changed(kept, done.stdout)
    return done.stdout


class UnrolledModel:
    """A transition system, unrolled from a first state for as many steps as requested.

    Parameters
    ----------
    system
        Result of `transition_system`.
    initial
        The first state is the one after power-on; else it is any.
    seconds
        Of the processor's time, whatever else it does; after so long the solver gives up.
    """

    def __init__(self, system: str, *, initial: bool, seconds: float) -> None:
        options = bitwuzla.Options()
        options.set(bitwuzla.Option.PRODUCE_MODELS, True)
        self._terms = bitwuzla.TermManager()
        self._parser = bitwuzla.Parser(self._terms, options)
        self._end = time.process_time() + seconds
        self._parser.configure_terminator(lambda: time.process_time() > self._end)
        self._parse(system)
        self._covers = [int(number) for number, _ in _COVER.findall(system)]
        self._asserts = [int(number) for number, _ in _ASSERT.findall(system)]
        self._steps = 0
        self._state()
        self._assert("(|top_is| s0)" if initial else "(not (|top_is| s0))")
        if initial:
            self._assert("(|top_i| s0)")

    @property
    def last(self) -> int:
        """The number of the last state."""
        return self._steps - 1

    def step(self, *, holds: bool) -> None:
        """Add a state; with ``holds`` the properties are taken to hold in the one before."""
        before = self.last
        if holds:
            self._assert(f"(|top_a| s{before})")
        self._state()
        self._assert(f"(|top_t| s{before} s{before + 1})")
        self._assert(f"(not (|top_is| s{before + 1}))")

    def require_false(self, name: str) -> None:
        """Leave out states in which the wire ``name`` is high in the last state so far."""
        self._assert(f"(not (|top_n {name}| s{self.last}))")

    def can_fail(self) -> bool:
        """Return whether an assertion can be violated in the last state; the solver is asked about each by itself."""
        return any(self._satisfiable(f"(not (|top_a {number}| s{self.last}))") for number in self._asserts)

    def reached(self) -> set[int]:
        """Return the numbers of the cover statements that the last state can reach."""
        return {number for number in self._covers if self._satisfiable(f"(|top_c {number}| s{self.last})")}

    def covers(self) -> set[int]:
        """Return the numbers of all cover statements."""
        return set(self._covers)

    def value(self, name: str, step: int) -> str:
        """Return the wire ``name`` in a state of the counterexample found last, as SMT-LIB writes it."""
        term = self._parser.parse_term(f"(|top_n {name}| s{step})")
        return str(self._parser.bitwuzla().get_value(term))

    def _state(self) -> None:
        state = f"s{self._steps}"
        self._steps += 1
        self._parse(f"(declare-fun {state} () |top_s|)")
        self._assert(f"(|top_h| {state})")
        self._assert(f"(|top_u| {state})")

    def _assert(self, formula: str) -> None:
        self._parse(f"(assert {formula})")

    def _parse(self, text: str) -> None:
        self._parser.parse(text, True, False)

    def _satisfiable(self, formula: str) -> bool:
        found = self._parser.bitwuzla().check_sat(self._parser.parse_term(formula))
        if found == bitwuzla.Result.UNKNOWN:
            raise ProofError(f"Solver must answer within the time given, and did not at step {self.last}")
        return bool(found == bitwuzla.Result.SAT)
