"""The machine as its programmer sees it: array size, buffer sizes, bus width; and the timing of its memory."""

from dataclasses import dataclass, fields, replace

__all__ = [
    "ARRAYS", "BUS_BYTES", "DEFAULT_MACHINE", "EXTRA_UNITS", "INTEGRATION", "LATENCY_CYCLES", "LIMITS",
    "MOST_STALL_PERCENT", "NAMED", "PARAMETER_BYTES", "PATCHES", "PRESETS", "SUM_BYTES", "SWITCHES", "TABLE_BYTES",
    "TABLE_SLOTS", "TILE_BYTES", "UNITS", "Machine", "MemoryTiming", "lanes_of_a_fetch", "preset",
]

TILE_BYTES = 16  # one 4x4 patch, or one run of a dot product: 16 int8 values a cycle
TABLE_BYTES = 256  # a value table: what each int8 value becomes, from -128 on
SUM_BYTES = 4  # of a sum of the array
PATCHES = 4  # that lanes of a cluster take at once from a buffer of so many memories a bank
PARAMETER_BYTES = 8  # of an output channel: its bias and its scale
TABLE_SLOTS = 4  # value tables that post-processing holds at a time

_XI_MULTIPLIERS = {"inner": 8, "winograd_inner": 16}  # of arrays of inner products, beside their lanes
_LEAST_WORDS = 16  # of a cluster's weight memory: two of its ninth weights

BUS_BYTES = 8
"""Width of the memory bus of the default machine."""

LATENCY_CYCLES = 20
"""Cycles to the first word of a burst from main memory, where nothing else is stated."""

MOST_STALL_PERCENT = 90
"""Of cycles in which a channel of the bus is held up at random."""

DEFAULT_MACHINE = "base"
"""Name of the preset that is taken where nothing else is stated."""

LIMITS = {
    "lanes": (1, 64), "clusters": (1, 64), "tiles": (1, 4), "post_lanes": (1, 32), "bus_bytes": (4, 64),
    "activation_bytes": (2048, 1 << 20), "weight_bytes": (2048, 1 << 20), "result_bytes": (1024, 1 << 20),
    "parameter_channels": (16, 4096), "queue_depth": (4, 64),
}
"""Least and greatest value of each size of a `Machine`; all are powers of two.

They must be: a channel's number is a lane group and a lane, a byte's address a word and a bank, an index a word and a
part of the bus, and each pair is told apart by bits, without a division.
"""

INTEGRATION: dict[str, tuple[int, ...]] = {
    "watchdog_cycles": (0, *(1 << bits for bits in range(8, 25))),
    "command_cycles": (0, *(1 << bits for bits in range(12, 29))),
    "axi_prot": tuple(range(8)),
    "erasure": (0, 1, 2),
}
"""Values of what suits a machine to the system around it, and is no part of its size."""

ARRAYS = {
    "plain": "products of int8 by int8 and an adder tree; no conv23",
    "winograd": "products of 10 by 12 bits between the transforms of F(2x2,3x3): conv and conv23",
    "inner": "products of sums, each worth two multiply-accumulates (Winograd, 1968); no conv23",
    "winograd_inner": "such products of 12 by 12 bits between the transforms of F(2x2,3x3): conv and conv23",
}
"""Kinds of array, and what each multiplies."""


def lanes_of_a_fetch(array: str) -> int:
    """Return the lanes whose weights a cluster fetches per cycle: its least number of lanes, and its most per tile.

    Parameters
    ----------
    array : str
        One of ``ARRAYS``.
    """
    return 2 if array in _XI_MULTIPLIERS else 1


UNITS = {
    "column_reuse": "conv23 reads the columns that neighbouring patches share only once",
    "paired_rows": "a run may consist of 8 bytes each of two kernel rows",
    "value_tables": "a table of 256 values behind requantisation",
    "residual_adder": "addition of a second tensor behind requantisation",
    "max_pooling": "max pooling behind requantisation",
    "whole_sums": "sums of 32 bits themselves, in place of values",
    "chaining": "results go back to the activation buffer",
    "row_unit": "softmax and normalisation of rows in the result buffer, through value tables and requantisation",
    "coded_weights": "weights that lie coded in memory, and are decoded as they are loaded",
    "channel_kernels": "conv23 of a depthwise layer takes a kernel and a bias for each channel, not for each lane",
    "integer_requantise": "requantisation by a multiplier, an addend and a shift beside that by a float32 scale",
    "wide_words": "inputs and results of 16 bits, as planes of upper and of lower bytes",
    "four_patches": "conv23 of a depthwise layer reads four channels a cycle, one for each of four lanes in a cluster",
}
"""Units that a machine may leave out, and what each does. `Machine` has a field of truth for each."""

EXTRA_UNITS = ("row_unit", "coded_weights", "channel_kernels", "integer_requantise", "wide_words",
               "four_patches")
"""Those that no preset has, nor a machine to which area and registers were fitted: they are counted by themselves."""

SWITCHES = UNITS | {
    "float_requantise": "requantisation by a float32 scale, which only a machine with integer_requantise leaves out",
}
"""All parameters of truth: the units, and the one that is no choice without another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Parameters shared by RTL, compiler and the models of time and energy.

    Attributes
    ----------
    lanes : int
        Output channels computed in parallel; each lane has 16 multipliers, or 8 in arrays of inner products.
    clusters : int
        Groups of lanes, each with its own weight memory and weight transform.
    tiles : int
        Tiles in flight: how many tiles share one weight fetch (accumulator sets per lane).
    post_lanes : int
        Values requantised per cycle.
    bus_bytes : int
        Width of the memory bus: at most 16 for each cluster, whose weight memory takes a word of 16 bytes a cycle.
    activation_bytes, weight_bytes, result_bytes : int
        Buffer capacities. ``weight_bytes`` counts the 128-bit main words; the ninth weights of
        the 3x3 kernels lie in a further eighth.
    parameter_channels : int
        Output channels whose bias and scale the parameter buffer holds.
    queue_depth : int
        Commands that each unit's queue holds.
    watchdog_cycles : int
        Number of cycles in which the host waits and nothing moves before a fault is raised; 0 for no watchdog.
    command_cycles : int
        Number of cycles that units may work without taking another command before a fault is raised; 0 for no limit.
    erasure : int
        Whether an abort erases all buffers: 0 never, 1 on request, 2 always (`isa.erasure`).
    axi_prot : int
        AxPROT of every burst, 0 to 7: bit 0 privileged, bit 1 non-secure, bit 2 instruction.
    array : str
        Kind of array, one of ``ARRAYS``.
    column_reuse, paired_rows, value_tables, residual_adder, max_pooling, whole_sums, chaining, row_unit : bool
        Whether the machine has the unit; see ``UNITS``. Without an array for conv23 there is no column reuse, and
        without value tables no softmax of rows.
    coded_weights : bool
        The same of weights that lie coded in memory: `isa.coded.weight_code`.
    channel_kernels : bool
        The same of depthwise kernels by channel, of an array for conv23: `isa.semantics.conv23`.
    integer_requantise : bool
        The same of sums that are brought to int8 in whole numbers: `isa.integers`.
    float_requantise : bool
        Whether sums are brought to int8 by a float32 scale. A machine without takes each such scale for 1, and has
        integer_requantise, no row unit and no words of 16 bits.
    wide_words : bool
        The same of inputs and results of 16 bits: `isa.words.word_planes`.
    four_patches : bool
        The same of depthwise layers whose lanes have a patch each, of a machine with `channel_kernels` and, in each
        cluster, four lanes (in arrays that take channels in pairs, of two channels each).
    """

    name: str = "custom"
    lanes: int = 4
    clusters: int = 1
    tiles: int = 4
    post_lanes: int = 4
    bus_bytes: int = BUS_BYTES
    activation_bytes: int = 128 * 1024
    weight_bytes: int = 64 * 1024
    result_bytes: int = 32 * 1024
    parameter_channels: int = 1024
    queue_depth: int = 16
    watchdog_cycles: int = 65536
    command_cycles: int = 0
    axi_prot: int = 0
    erasure: int = 0
    array: str = "winograd"
    column_reuse: bool = True
    paired_rows: bool = True
    value_tables: bool = True
    residual_adder: bool = True
    max_pooling: bool = True
    whole_sums: bool = True
    chaining: bool = True
    row_unit: bool = False
    coded_weights: bool = False
    channel_kernels: bool = False
    integer_requantise: bool = False
    wide_words: bool = False
    four_patches: bool = False
    float_requantise: bool = True

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "name":
                continue
            if field.name == "array":
                if value not in ARRAYS:
                    raise ValueError(f"Machine array must be one of {', '.join(ARRAYS)}, not {value!r}")
                continue
            if field.name in SWITCHES:
                if type(value) is not bool:
                    raise ValueError(f"Machine {field.name} must be true or false, not {value!r}")
                continue
            if field.name in INTEGRATION:
                if type(value) is not int or value not in INTEGRATION[field.name]:
                    raise ValueError(f"Machine {field.name} must be one of {INTEGRATION[field.name]}, not {value!r}")
                continue
            if type(value) is not int or value <= 0 or value & (value - 1):
                raise ValueError(f"Machine {field.name} must be a positive power of two, not {value!r}")
        for name, (low, high) in LIMITS.items():
            if not low <= (value := getattr(self, name)) <= high:
                raise ValueError(f"Machine {name} must be in {low}..{high}, not {value!r}")
        least, most = self.lanes_per_fetch, self.lanes_per_fetch * self.tiles
        if self.lanes_per_cluster not in range(least, most + 1):
            limit = f"1..tiles ({most})" if least == 1 else f"{least}..{most} ({least} * tiles) of array {self.array!r}"
            raise ValueError(f"Machine lanes per cluster must be in {limit}, not {self.lanes / self.clusters!r}")
        if self.weight_words < _LEAST_WORDS:
            raise ValueError(f"Machine weight_bytes must be at least {_LEAST_WORDS * TILE_BYTES} for each of its "
                             f"{self.clusters} clusters, not {self.weight_bytes!r}")
        if self.bus_bytes > (widest := TILE_BYTES * self.clusters):
            raise ValueError(f"Machine bus_bytes must be at most {TILE_BYTES} * clusters ({widest}), since a cluster "
                             f"takes a word of weights a cycle, not {self.bus_bytes!r}")
        if self.erasure and not self.residual_adder:
            raise ValueError(f"Machine erasure needs residual_adder, by whose path the result buffer is erased, "
                             f"and must be 0 without it, not {self.erasure!r}")
        self._check_requantisers()
        if self.post_lanes > self.lanes:
            raise ValueError(f"Machine post_lanes must not exceed lanes ({self.lanes}), "
                             f"not {self.post_lanes!r}")

    def _check_requantisers(self) -> None:
        if self.float_requantise:
            return
        if not self.integer_requantise:
            raise ValueError("Machine integer_requantise must be true without float_requantise, as sums are brought to "
                             "int8 by one of them, not False")
        for unit in ("row_unit", "wide_words"):
            if getattr(self, unit):
                raise ValueError(f"Machine {unit} must be false without float_requantise, by which its results are "
                                 "scaled, not True")

    def same_as(self, other: "Machine") -> bool:
        """Return whether two machines differ only in their names."""
        return replace(self, name=other.name) == other

    @property
    def winograd(self) -> bool:
        """Whether the array computes conv23."""
        return self.array in ("winograd", "winograd_inner")

    @property
    def inner(self) -> bool:
        """Whether the array computes two products with one multiplication: `isa.semantics.inner_product`."""
        return self.array in _XI_MULTIPLIERS

    @property
    def pairs_channels(self) -> bool:
        """Whether conv23 takes input channels in pairs, and a lane's output channels one after the other."""
        return self.array == "winograd_inner"

    @property
    def reuses_columns(self) -> bool:
        """Whether conv23 reads the columns that neighbouring patches share only once."""
        return self.winograd and self.column_reuse

    @property
    def takes_channel_kernels(self) -> bool:
        """Whether conv23 takes kernels by channel, where lane l of a lane group sees channel l alone."""
        return self.winograd and self.channel_kernels

    @property
    def bends_words(self) -> bool:
        """Whether results of 16 bits may pass a curve, whose entries lie in rows of the value tables."""
        return self.wide_words and self.value_tables and self.bus_bytes >= 2 * SUM_BYTES

    @property
    def takes_four_patches(self) -> bool:
        """Whether conv23 takes the patches of four channels at once: `isa.semantics.conv23`."""
        return self.takes_channel_kernels and self.four_patches and self.fetch_slots == PATCHES

    @property
    def block_unit(self) -> int:
        """Channels to whose multiples blocks of pixels begin in the activation buffer, if four are to be read at once.

        Elsewhere 1.
        """
        return self.lanes_per_cluster if self.takes_four_patches else 1

    @property
    def activation_memories(self) -> int:
        """Memories of a byte that the activation buffer is: one for each bank, or four."""
        return TILE_BYTES * (PATCHES if self.takes_four_patches else 1)

    @property
    def input_unit(self) -> int:
        """Bytes at whose multiples an input begins in the activation buffer: a word of all banks for each channel."""
        return TILE_BYTES * self.block_unit

    @property
    def normalises_rows(self) -> bool:
        """Whether post-processing computes the softmax of rows."""
        return self.row_unit and self.value_tables

    @property
    def lanes_per_cluster(self) -> int:
        """Lanes that share one weight memory."""
        return self.lanes // self.clusters

    @property
    def lanes_per_fetch(self) -> int:
        """Lanes of a cluster whose weights are fetched in a cycle."""
        return lanes_of_a_fetch(self.array)

    @property
    def fetch_slots(self) -> int:
        """Tile slots in which all lanes of a cluster fetch their weights: the least duration of a step."""
        return self.lanes_per_cluster // self.lanes_per_fetch

    @property
    def takes_whole_tiles(self) -> bool:
        """Whether post-processing takes a tile's sums of all lanes in one cycle."""
        return self.post_lanes == self.lanes

    @property
    def macs_per_slot(self) -> int:
        """Multiply-accumulates of ``conv`` in a tile slot."""
        return TILE_BYTES * self.lanes

    @property
    def peak_macs(self) -> dict[str, float]:
        """Maximum multiply-accumulates per cycle, by instruction: ``conv23`` does 36 where others do 16."""
        return {"conv": self.macs_per_slot, **({"conv23": self.macs_per_slot * 36 / 16} if self.winograd else {})}

    @property
    def multipliers(self) -> int:
        """Multipliers in the array: of 8 by 8 bits in a plain one, of 10 by 12 behind transforms.

        An array of inner products has one of 9 by 9 for two products, and 8 of 8 by 8 for xi; behind transforms they
        are of 12 by 12, and 16 of 10 by 10.
        """
        return self.macs_per_slot // 2 + _XI_MULTIPLIERS[self.array] if self.inner else self.macs_per_slot

    @property
    def channel_parameters(self) -> int:
        """Parameters of an output channel of conv23: with pairs of channels each pixel of a tile has its own bias."""
        return 4 if self.pairs_channels else 1

    @property
    def written_bytes(self) -> int:
        """Bytes that the activation buffer takes in a cycle: a bus word, or a byte for each of its banks."""
        return min(self.bus_bytes, TILE_BYTES)

    @property
    def decoded_bytes(self) -> int:
        """Bytes of coded weights that are decoded in a cycle: two bus words, or what the weight memories take."""
        return min(2 * self.bus_bytes, TILE_BYTES * self.clusters)

    @property
    def decodes_two_words(self) -> bool:
        """Whether coded weights are decoded two bus words a cycle."""
        return self.coded_weights and self.decoded_bytes > self.bus_bytes

    @property
    def padded_bytes(self) -> int:
        """Bytes to whose multiples all that `ldw` loads is padded in memory: a word of weights, or a bus word."""
        return max(self.bus_bytes, TILE_BYTES)

    @property
    def padded_channels(self) -> int:
        """Output channels whose parameters are as many bytes."""
        return self.padded_bytes // PARAMETER_BYTES

    @property
    def lane_runs(self) -> int:
        """Runs of 16 bytes that hold a byte for every lane."""
        return -(-self.lanes // TILE_BYTES)

    @property
    def weight_words(self) -> int:
        """128-bit main words in each cluster's weight memory."""
        return self.weight_bytes // TILE_BYTES // self.clusters

    @property
    def kernels(self) -> int:
        """3x3 kernels that all weight memories hold together: two to a word and ninth, or nine bytes of runs each."""
        words = self.weight_words * self.clusters
        return 2 * words if self.winograd else words * TILE_BYTES // 9


PRESETS = {
    machine.name: machine
    for machine in (
        Machine(name="nano", lanes=1, clusters=1, tiles=4, post_lanes=1, bus_bytes=4,
                activation_bytes=32 * 1024, weight_bytes=16 * 1024, result_bytes=8 * 1024,
                parameter_channels=512, queue_depth=16),
        Machine(name="base", array="winograd_inner", lanes=8, clusters=1, post_lanes=8),
        Machine(name="large", array="winograd_inner", lanes=32, clusters=4, tiles=4, post_lanes=16, bus_bytes=16,
                activation_bytes=256 * 1024, weight_bytes=256 * 1024, result_bytes=64 * 1024,
                parameter_channels=2048, queue_depth=16),
    )
}


NAMED = PRESETS | {
    name: replace(PRESETS[name.removesuffix("_depthwise")], name=name, channel_kernels=True, four_patches=True)
    for name in ("base_depthwise", "large_depthwise")
} | {"base_integer": replace(PRESETS["base"], name="base_integer", integer_requantise=True, float_requantise=False)}
"""The presets, `base` and `large` with both units for depthwise layers (docs/decisions/array.md has the cost), and
`base` that requantises in whole numbers alone (docs/decisions/numbers.md)."""


def preset(name: str) -> Machine:
    """Return the machine of ``NAMED`` that is called ``name``.

    Raises
    ------
    ValueError
        If there is none; the message lists those there are.
    """
    if name not in NAMED:
        raise ValueError(f"Machine must be one of {', '.join(NAMED)}, not {name!r}")
    return NAMED[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryTiming:
    """Main memory behind the bus: cycles to the first word of a burst, then bytes per cycle.

    `isa.dram.dram.DramTiming` is the timing of a DRAM.

    Attributes
    ----------
    latency_cycles, bytes_per_cycle : int
    stall_percent : int
        Percentage of cycles in which each channel of the bus stalls at random. With stalls, reads and writes also take
        effect as early or as late as AXI allows.
    seed : int
        Seed of the stalls.
    """

    latency_cycles: int = LATENCY_CYCLES
    bytes_per_cycle: int = BUS_BYTES
    stall_percent: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("latency_cycles", 1), ("bytes_per_cycle", 1), ("seed", 0)):
            value = getattr(self, name)
            if not isinstance(value, int) or value < least:
                raise ValueError(f"Memory {name} must be at least {least}, not {value!r}")
        if not isinstance(self.stall_percent, int) or self.stall_percent not in range(MOST_STALL_PERCENT + 1):
            raise ValueError(f"Memory stall_percent must be in 0..{MOST_STALL_PERCENT}, not {self.stall_percent!r}")

    @classmethod
    def default(cls, machine: Machine) -> "MemoryTiming":
        """Return the default timing: ``LATENCY_CYCLES``, then one bus word per cycle."""
        return cls(bytes_per_cycle=machine.bus_bytes)

    def at(self, mhz: float) -> "MemoryTiming":
        """Return the same memory at another clock, which only changes the cycles of DRAM."""
        del mhz
        return self

    def to_json(self) -> dict[str, int | str]:
        """Return the timing in the form of reports; stalls only if there are any."""
        return {"latency_cycles": self.latency_cycles, "bytes_per_cycle": self.bytes_per_cycle,
                **({"stall_percent": self.stall_percent, "seed": self.seed} if self.stall_percent else {})}

    @property
    def brief(self) -> str:
        """Text for the cell of a table: latency in cycles + bytes per cycle."""
        return f"{self.latency_cycles} + {self.bytes_per_cycle} B{self._stalls(', ')}"

    def _stalls(self, before: str) -> str:
        return f"{before}{self.stall_percent} % of cycles stalled, seed {self.seed}" if self.stall_percent else ""

    def __str__(self) -> str:
        return f"{self.latency_cycles} cycles latency, then {self.bytes_per_cycle} bytes per cycle{self._stalls('; ')}"
