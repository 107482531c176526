"""The line of each command is that of its intrinsic, in loops, behind calls and where calls of C are broken."""

from tilewright.compiler.emit.c import program_text
from tilewright.compiler.emit.c_lines import command_lines
from tilewright.isa.program import Function, Loop, Program, issue, step

LONG = issue("act", "run", "signal_out_ready", "wait_out_free", "wait_res_ready", base=step("i", 1024), rows=4,
             channels=16, pooled=1, residual=1)
SHORT = issue("sta", "linear", target=step("i", 512), base=0, rows=2)


def test_lines_are_those_of_the_intrinsics():
    body = (issue("ldw", "main", address=1 << 31, base=0, words=4), Loop("i", 3, (LONG, SHORT)),
            issue("sta", "fence"))
    program = Program((Function("first", "One.\nTwo.", body), Function("second", "", (Loop("i", 2, (SHORT,)),))))
    text = program_text(program, "title")
    source = text.splitlines()
    lines = list(command_lines(program, text))
    commands = [f"tw_{each.instruction.mnemonic}_{each.variant.name}(" for _, each in program.commands()]
    assert len(lines) == len(commands) == 10
    for line, command in zip(lines, commands, strict=True):
        assert command in source[line - 1]
    assert not source[lines[1] - 1].rstrip().endswith(";")      # broken: the next command stands behind the rest
    assert lines[1:7:2] == [lines[1]] * 3
