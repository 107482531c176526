"""Flip-flops that a machine saves by leaving out units, by block: differences of elaborated machines.

Counted on `nano`, on `base`, and on a machine of two lanes between them, each without one unit at a time; the terms
below are lines through the three, and those of inner products through six machines of 2 to 8 lanes. Without all units
at once the sum of blocks is met within 3 %.
"""

from collections.abc import Mapping

from tilewright.isa.machine import PATCHES, TILE_BYTES, Machine

__all__ = ["channel_kernel_registers", "decoder_registers", "four_patch_registers", "integer_registers",
           "row_unit_registers", "saved_registers", "word_registers"]

_PLAIN_LANE = 643
"""Of a plain lane, its part of the cluster included."""

_INNER_LANE, _XI_LANE, _PAIR_BUFFER = 565, 350, 544
"""Of a lane of inner products (an output channel), of the lane of xi, and of a weight buffer that fetches two runs."""

_TILE_LANE, _TILE_CLUSTER, _TILE_BESIDE, _TILE_BUFFER = 902.5, 842, 1444, 731
"""The same behind transforms: of an output channel, of a cluster's transforms, of what stands beside the clusters (xi,
patches and their transform), and of a weight buffer."""


def row_unit_registers(machine: Machine) -> int:
    """Return how many flip-flops more a machine has with a row unit, a line through post-processing of 1 to 8 lanes.

    Counted on machines of 1, 2, 4 and 8 lanes of 4 KiB memories: within 1 %.
    """
    return 804 + 304 * machine.post_lanes if machine.normalises_rows else 0


def decoder_registers(machine: Machine) -> dict[str, int]:
    """Return by block how many flip-flops more a machine has with a decoder of weights, as its parts add up.

    The load has the decoder (896 on `base`, counted) and the steps of a block; a weight buffer keeps two bus words
    where it kept one.
    """
    # Here, because it brings NumPy and few machines have a decoder.
    from tilewright.isa.coded.weight_code import WIDTHS, WeightCode

    code, bus, written = WeightCode.of(machine), 8 * machine.bus_bytes, machine.decoded_bytes
    held = code.word_nibbles.bit_length()
    lane = 2 * bus + (held + 1) + (held - 1) + 4 + 40     # two words, how much and where, the width, planes and mask
    wider = 8 * min(written, TILE_BYTES) - 8 * min(machine.bus_bytes, TILE_BYTES) + 1
    return {"load": code.lanes * lane + bus + 4 * WIDTHS + 88 + 50,
            "weight_buffer": wider * machine.clusters if machine.decodes_two_words else 0}


def channel_kernel_registers(machine: Machine) -> dict[str, int]:
    """Return by block how many flip-flops more a machine has with kernels by channel, exactly as elaborated.

    The number of the lane whose turn it is goes from the sequencer's state through two stages, then with the fetch to
    the clusters; for each kernel of a fetch, three stages of a weight buffer hold whether it counts.
    """
    if not machine.takes_channel_kernels:
        return {}
    pairs, turns = int(machine.pairs_channels), machine.lanes // machine.lanes_per_fetch
    turn = max(1, (turns - 1).bit_length())
    return {"sequencer": 2 + turn + 2 * (1 + turn) + (1 + pairs) * (1 + turn + pairs),
            "weight_buffer": 3 * (1 + pairs) * machine.clusters, "post_processing": pairs}


def four_patch_registers(machine: Machine) -> dict[str, int]:
    """Return by block how many flip-flops more a machine has with four patches at once, exactly as elaborated.

    Each lane behind the first delays its patch by a cycle more, and one more where channels are taken in pairs; the
    three transforms have 160 bits each. In the buffer each of the four memories of a bank has an address of its own.
    Windows of a max pooling have two more in post-processing.
    """
    if not machine.takes_four_patches:
        return {}
    pairs, lanes = int(machine.pairs_channels), PATCHES - 1
    waits = 8 * TILE_BYTES * (sum(range(1, PATCHES)) + pairs * lanes)
    address = (machine.activation_bytes // TILE_BYTES).bit_length() - 1
    return {"array": waits + lanes * (10 * TILE_BYTES + 2) + PATCHES + pairs, "sequencer": 5 + pairs,
            "activation_buffer": 1133 + 2 * pairs + lanes * TILE_BYTES * address,
            "weight_buffer": 6 * pairs * machine.clusters, "post_processing": 2 * machine.max_pooling}


def integer_registers(machine: Machine) -> dict[str, int]:
    """Return by block how many flip-flops more a machine has with integer requantisation, exactly as elaborated.

    Nine are the shift and the choices; of a lane's 352 most take multiplier and addend along, and a product of 63 bits.
    Without float32 scales a lane has 100 fewer.
    """
    lane = 352 if machine.float_requantise else 252
    return {"post_processing": 9 + lane * machine.post_lanes} if machine.integer_requantise else {}


def word_registers(machine: Machine) -> dict[str, int]:
    """Return by block how many flip-flops more a machine has with words of 16 bits, or, below 0, fewer.

    Counted on machines of 8 lanes in all arrays, with 1 and 4 lanes of post-processing: there bounds no longer ride
    through the requantisers, which saves more than wider results take. Curves ride behind them, counted with buses of
    8 and 16 bytes.
    """
    if not machine.wide_words:
        return {}
    curves = 111 + machine.post_lanes * (333 + 2 * (machine.bus_bytes // 4).bit_length()) if machine.bends_words else 0
    return {"array": 26, "sequencer": 89, "activation_buffer": 6,
            "post_processing": 100 - 280 * machine.post_lanes + curves}


def saved_registers(machine: Machine, whole: Mapping[str, int]) -> dict[str, int]:
    """Return by block how many flip-flops fewer a machine has than the same with all units.

    Parameters
    ----------
    machine : Machine
        With an array of any kind.
    whole : mapping of str to int
        The flip-flops of the machine with all units and ``winograd``.
    """
    post, bus = machine.post_lanes, machine.bus_bytes
    units: dict[str, dict[str, float]] = {
        "column_reuse": {"activation_buffer": 5},
        "paired_rows": {},
        "value_tables": {"post_processing": 7 + 62 * post + 26.5 * bus},
        "residual_adder": {"post_processing": 1937 * max(1, post // 4) + 28 * post, "load": 5},
        "max_pooling": {"post_processing": 334 + 41 * post},
        "whole_sums": {"post_processing": 27},
        "chaining": {"store": 209 + 9 * bus},
    }
    found: dict[str, float] = dict.fromkeys(whole, 0.0)
    for unit, blocks in units.items():
        if not getattr(machine, unit):
            for block, saved in blocks.items():
                found[block] += saved
    for block, saved in _saved_of_array(machine, whole).items():
        found[block] += saved
    return {block: round(min(saved, whole[block])) for block, saved in found.items()}


def _saved_of_array(machine: Machine, whole: Mapping[str, int]) -> dict[str, float]:
    """Return what an array without transforms saves; an array of inner products takes more for its weights."""
    post, lanes, clusters = machine.post_lanes, machine.lanes, machine.clusters
    if machine.pairs_channels:
        array = _TILE_LANE * lanes + _TILE_CLUSTER * clusters + _TILE_BESIDE
        sums = 1383 + 270 * post + 140 * (post == 1)    # two channels are chosen at least
        return {"array": whole["array"] - array, "sequencer": whole["sequencer"] - sums, "activation_buffer": -12,
                "weight_buffer": whole["weight_buffer"] - _TILE_BUFFER * clusters}
    if machine.winograd:
        return {}
    plain: dict[str, float] = {
        "array": whole["array"] - _PLAIN_LANE * lanes, "sequencer": 87 + 320 * post, "activation_buffer": 192,
        "weight_buffer": 187 * clusters, "post_processing": 91, "load": 76, "store": 56}
    if not machine.inner:
        return plain
    return plain | {"array": whole["array"] - _INNER_LANE * lanes - _XI_LANE, "sequencer": 53 + 288 * post,
                    "weight_buffer": whole["weight_buffer"] - _PAIR_BUFFER * clusters, "post_processing": 60}
