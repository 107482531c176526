"""Single-bit upsets: the memory of each queue of the coprocessor asks the simulator in every cycle what turns over."""

import re

__all__ = ["queue_names", "with_upsets"]

_MODULE = re.compile(r"^module (\S+) ?\(.*?^endmodule$", re.MULTILINE | re.DOTALL)
_STORAGE = re.compile(r"^  reg (?:\[(\d+):0\] )?storage \[(\d+):0\];$", re.MULTILINE)
_ASKS = """\
  import "DPI-C" function int tilewright_upset(input int which, input int places);
  integer upset_place;
  always @(negedge clk) begin
    upset_place = tilewright_upset({queue}, {bits});
    if (upset_place >= 0)
      storage[upset_place / {width}] <= storage[upset_place / {width}] ^ ({width}'d1 << (upset_place % {width}));
  end
"""


def queue_names(text: str) -> list[str]:
    """Return the queues in Verilog of `verilog_of`, as paths inside the coprocessor, in the order of their numbers."""
    return [module[1].strip("\\").partition(".")[2] for module in _MODULE.finditer(text) if _STORAGE.search(module[0])]


def with_upsets(text: str) -> str:
    """Return Verilog of `verilog_of` whose queues call ``tilewright_upset`` of sim/verilator/harness/upset.cpp."""
    numbers = {name: number for number, name in enumerate(queue_names(text))}

    def asks(module: re.Match[str]) -> str:
        storage = _STORAGE.search(module[0])
        if storage is None:
            return module[0]
        width, depth = int(storage[1] or 0) + 1, int(storage[2]) + 1
        queue = numbers[module[1].strip("\\").partition(".")[2]]
        asked = _ASKS.format(queue=queue, bits=width * depth, width=width)
        return f"{module[0].removesuffix('endmodule')}{asked}endmodule"

    return _MODULE.sub(asks, text)
