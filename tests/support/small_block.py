"""Four multipliers with registers around them, as Verilog, and NumPy's word for what they give: a netlist of a second.

The stimuli are like those of layers: weights held for some cycles, data of several widths, pauses.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.gates.electrical import Electrical, electrical_of
from tilewright.hardware.gates.events import Stimulus
from tilewright.hardware.gates.mapping import map_verilog
from tilewright.hardware.gates.netlist import Netlist, read_netlist
from tilewright.tools.debian import debian_data

MULTIPLIERS, A_BITS, B_BITS, SUM_BITS = 4, 10, 12, 28

VERILOG = f"""
module lane (input clk, input valid, input load, input [{MULTIPLIERS * A_BITS - 1}:0] a,
             input [{MULTIPLIERS * B_BITS - 1}:0] b, output reg [{SUM_BITS - 1}:0] sum);
  reg valid_1, valid_2;
  reg [{MULTIPLIERS * A_BITS - 1}:0] a_held;
  reg [{MULTIPLIERS * B_BITS - 1}:0] b_held;
  reg [{MULTIPLIERS * (A_BITS + B_BITS) - 1}:0] products;
  integer k;
  always @(posedge clk) begin
    valid_1 <= valid;
    valid_2 <= valid_1;
    if (valid) a_held <= a;
    if (load) b_held <= b;
    if (valid_1)
      for (k = 0; k < {MULTIPLIERS}; k = k + 1)
        products[{A_BITS + B_BITS} * k +: {A_BITS + B_BITS}] <=
          $signed(a_held[{A_BITS} * k +: {A_BITS}]) * $signed(b_held[{B_BITS} * k +: {B_BITS}]);
    if (valid_2)
      sum <= $signed(products[0 +: {A_BITS + B_BITS}]) + $signed(products[{A_BITS + B_BITS} +: {A_BITS + B_BITS}])
           + $signed(products[{2 * (A_BITS + B_BITS)} +: {A_BITS + B_BITS}])
           + $signed(products[{3 * (A_BITS + B_BITS)} +: {A_BITS + B_BITS}]);
  end
endmodule
"""


@dataclass(frozen=True)
class Block:
    """The netlist and its loads."""

    netlist: Netlist
    electrical: Electrical


@cache
def small_block(*, gated: bool = False) -> Block:
    library = debian_data("osu018_stdcells.lib")
    netlist = read_netlist(map_verilog(VERILOG, "lane", library, gated=gated), "lane", read_library(library))
    return Block(netlist, electrical_of(netlist))


@dataclass(frozen=True)
class Signals:
    """Values that drive the block, shape (cycles,) or (cycles, multipliers)."""

    valid: np.ndarray
    load: np.ndarray
    a: np.ndarray
    b: np.ndarray


def signals(seed: int, *, cycles: int, hold: int, a_scale: float, b_scale: float, busy: float) -> Signals:
    rng = np.random.default_rng(seed)
    a = np.clip(np.round(rng.normal(0, a_scale, (cycles, MULTIPLIERS))), -512, 511).astype(np.int64)
    b = np.clip(np.round(rng.normal(0, b_scale, (cycles, MULTIPLIERS))), -2048, 2047).astype(np.int64)
    return Signals(rng.random(cycles) < busy, np.arange(cycles) % hold == 0, a, b)


def stimulus(block: Block, given: Signals) -> Stimulus:
    """Return bits for the netlist's borders: inputs, and the sums as NumPy has them."""
    columns = {"valid": given.valid[:, None].astype(np.uint8), "load": given.load[:, None].astype(np.uint8),
               "a": _bits(given.a, A_BITS), "b": _bits(given.b, B_BITS), "sum": _bits(_sums(given)[:, None], SUM_BITS)}

    def column(names):
        name, index = next((name, index) for name, index in names if name in columns)
        return columns[name][:, index]

    netlist = block.netlist
    return Stimulus(np.stack([column(names) for _, names in netlist.inputs], axis=1),
                    np.stack([column(names) for _, names in netlist.outputs], axis=1).astype(np.int8),
                    np.zeros(len(netlist.flops), np.uint8))


def _sums(given: Signals) -> np.ndarray:
    """Return the output in every cycle, all registers being zero at first."""
    a = b = products = np.zeros(MULTIPLIERS, np.int64)
    valid_1 = valid_2 = False
    total, out = 0, []
    for valid, load, new_a, new_b in zip(given.valid, given.load, given.a, given.b, strict=True):
        out.append(total)
        total = int(products.sum()) if valid_2 else total
        products = a * b if valid_1 else products
        valid_1, valid_2 = bool(valid), valid_1
        a, b = new_a if valid else a, new_b if load else b
    return np.array(out, np.int64)


def _bits(values: np.ndarray, width: int) -> np.ndarray:
    """Return two's complement, lowest bit first, the numbers of a row side by side: (cycles, numbers * width)."""
    return ((values[:, :, None] >> np.arange(width)) & 1).astype(np.uint8).reshape(len(values), -1)
