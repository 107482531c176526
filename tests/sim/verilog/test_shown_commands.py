"""Commands by name: each has its code, and the letter of the unit that takes it."""

import re

from tilewright.isa.encoding import KNOWN
from tilewright.sim.timing.shared import only_sets
from tilewright.sim.verilog.shown_commands import IDLE_CODE, command_kinds, command_package

CODES = {f"{instruction.mnemonic}.{variant.name}": (instruction.funct3 << 3 | variant.code, variant)
         for instruction in KNOWN.values() for variant in instruction.variants}


def test_the_package_names_every_command_and_idle():
    found = {name: int(code) for name, code in re.findall(r"\\?([\w.]+) += 6'd(\d+)", command_package())}
    assert found == {name: code for name, (code, _) in CODES.items()} | {"idle": IDLE_CODE}
    assert len(set(found.values())) == len(found)


def test_each_code_has_the_letter_of_its_unit_and_a_capital_if_it_only_sets():
    kinds = command_kinds()
    assert len(kinds) == 64
    letters = {"load": "l", "mac": "a", "post": "p", "store": "s", "host": "."}
    for name, (code, variant) in CODES.items():
        wanted = "c" if name in ("sta.linear", "sta.blocked") else letters[variant.unit]
        assert kinds[code] == (wanted.upper() if only_sets(variant.name) else wanted), name
    known = {code for code, _ in CODES.values()}
    assert {kinds[code] for code in range(64) if code not in known} == {"."}
