"""Plain names in Verilog: escaped identifiers, which several tools cannot handle, become ordinary ones.

Yosys writes ``coprocessor.load.front``, ``u[3]`` and ``$17`` behind a backslash, which is legal. But abc in Yosys 0.70
stops at brackets and dots in them, and tools that write netlists, constraints or scripts each quote them in a way of
their own.
"""

import re
from collections.abc import Iterator

__all__ = ["KEYWORDS", "plain_names"]

# IEEE 1800-2017, annex B; those of Verilog-2005 (IEEE 1364-2005, annex B) are among them but for the last line's.
KEYWORDS = frozenset("""
accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind bins
binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config const
constraint context continue cover covergroup coverpoint cross deassign default defparam design disable dist do edge
else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup endinterface endmodule
endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask enum event eventually expect
export extends extern final first_match for force foreach forever fork forkjoin function generate genvar global highz0
highz1 if iff ifnone ignore_bins illegal_bins implements implies import incdir include initial inout input inside
instance int integer interconnect interface intersect join join_any join_none large let liblist library local
localparam logic longint macromodule matches medium modport module nand negedge nettype new nexttime nmos nor
noshowcancelled not notif0 notif1 null or output package packed parameter pmos posedge primitive priority program
property protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase
randsequence rcmos real realtime ref reg reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1
s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal showcancelled signed small
soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on
sync_reject_on table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand
trior trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void
wait wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor
""".split())

_TOKEN = re.compile(r"""
    (?P<apart>//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*")     # comments and strings hold no identifiers
    |\\(?P<escaped>\S+)(?P<space>\s)
    |(?P<plain>(?<![\w$'`])[A-Za-z_][\w$]*)
""", re.VERBOSE | re.DOTALL | re.ASCII)


def plain_names(text: str) -> str:
    """Return Verilog without escaped identifiers, the same design otherwise.

    A character that a plain identifier cannot hold becomes ``_``. One escaped identifier becomes the same name wherever
    it stands, so ports and modules still meet; two never become one, nor one that is there already or a keyword of
    Verilog or SystemVerilog: then a number is added, in the order of appearance. So one text always gives the same
    names. An escaped identifier that could stand without its backslash *is* that plain one (IEEE 1364-2005, 3.7.1), and
    keeps its name.
    """
    names = _names(text)
    return _TOKEN.sub(lambda found: _replaced(found, names), text)


def _names(text: str) -> dict[str, str]:
    """Return the new name of every escaped identifier."""
    taken = {found["plain"] for found in _tokens(text) if found["plain"]} | KEYWORDS
    escaped = dict.fromkeys(found["escaped"] for found in _tokens(text) if found["escaped"])
    # A dollar sign is legal in a plain identifier; it goes too, unless the text has that one without a backslash.
    names = {each: each for each in escaped if _is_plain(each) and ("$" not in each or each in taken)}
    taken.update(names)
    for each in escaped:
        if each in names:
            continue
        wanted = re.sub(r"\W", "_", each, flags=re.ASCII)
        wanted = f"_{wanted}" if wanted[0].isdigit() else wanted
        name, number = wanted, 2
        while name in taken:
            name, number = f"{wanted}_{number}", number + 1
        names[each] = name
        taken.add(name)
    return names


def _tokens(text: str) -> Iterator[re.Match[str]]:
    return _TOKEN.finditer(text)


def _is_plain(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][\w$]*", name, re.ASCII) is not None and name not in KEYWORDS


def _replaced(found: re.Match[str], names: dict[str, str]) -> str:
    if found["escaped"] is None:
        return found[0]
    # The blank ended the escaped identifier; it stays where the next character would join the name.
    following = found.string[found.end():found.end() + 1]
    can_go = found["space"] == " " and not re.match(r"[\w$\\]", following)
    return names[found["escaped"]] + ("" if can_go else found["space"])
