"""Machines to which the area model is fitted: the presets, and others that separate the parameters.

The others are small, since synthesis of one of 16 lanes takes as long as that of five of them. They were drawn at
random, by array and lanes, and kept where they add most to what a regression knows (D-optimal, greedily). They
stand here as a list, so that they stay what was synthesised when the space of machines changes.
"""

from tilewright.isa.machine import PRESETS, Machine

__all__ = ["FITTED_MACHINES", "designs"]

_KIB = 1024

FITTED_MACHINES = (
    Machine(name="fit-0", lanes=1, clusters=1, post_lanes=1, bus_bytes=16, activation_bytes=512 * _KIB,
            weight_bytes=8 * _KIB, result_bytes=128 * _KIB, parameter_channels=32, queue_depth=8,
            max_pooling=False, chaining=False, whole_sums=False),
    Machine(name="fit-1", lanes=2, clusters=1, post_lanes=1, bus_bytes=16, activation_bytes=4 * _KIB,
            weight_bytes=8 * _KIB, parameter_channels=2048, array="inner", max_pooling=False),
    Machine(name="fit-2", lanes=4, clusters=4, tiles=1, post_lanes=4, bus_bytes=16, activation_bytes=4 * _KIB,
            weight_bytes=256 * _KIB, result_bytes=256 * _KIB, parameter_channels=64, column_reuse=False,
            chaining=False, whole_sums=False),
    Machine(name="fit-3", lanes=2, clusters=1, post_lanes=2, bus_bytes=16, weight_bytes=256 * _KIB,
            result_bytes=2 * _KIB, parameter_channels=2048, queue_depth=4, array="plain", whole_sums=False),
    Machine(name="fit-4", lanes=2, clusters=1, post_lanes=2, bus_bytes=16, activation_bytes=8 * _KIB,
            weight_bytes=16 * _KIB, result_bytes=2 * _KIB, parameter_channels=32, queue_depth=8,
            paired_rows=False, max_pooling=False, whole_sums=False),
    Machine(name="fit-5", lanes=1, clusters=1, post_lanes=1, bus_bytes=4, activation_bytes=4 * _KIB,
            weight_bytes=4 * _KIB, result_bytes=256 * _KIB, parameter_channels=64, queue_depth=8,
            array="plain", paired_rows=False, whole_sums=False),
    Machine(name="fit-6", lanes=4, clusters=4, tiles=2, post_lanes=4, bus_bytes=16, activation_bytes=512 * _KIB,
            weight_bytes=4 * _KIB, result_bytes=8 * _KIB, parameter_channels=2048, queue_depth=32,
            paired_rows=False, max_pooling=False, whole_sums=False),
    Machine(name="fit-7", lanes=8, clusters=1, post_lanes=8, bus_bytes=4, weight_bytes=256 * _KIB,
            result_bytes=64 * _KIB, parameter_channels=64, queue_depth=32, array="inner",
            residual_adder=False, max_pooling=False, whole_sums=False),
    Machine(name="fit-8", lanes=1, clusters=1, tiles=2, post_lanes=1, bus_bytes=16, activation_bytes=8 * _KIB,
            weight_bytes=256 * _KIB, parameter_channels=2048, value_tables=False, residual_adder=False,
            whole_sums=False),
    Machine(name="fit-9", lanes=2, clusters=1, post_lanes=2, bus_bytes=4, activation_bytes=32 * _KIB,
            weight_bytes=4 * _KIB, result_bytes=2 * _KIB, parameter_channels=2048, queue_depth=4,
            column_reuse=False, residual_adder=False, chaining=False, whole_sums=False),
    Machine(name="fit-10", lanes=4, clusters=1, post_lanes=4, bus_bytes=4, activation_bytes=8 * _KIB,
            weight_bytes=8 * _KIB, parameter_channels=128, queue_depth=32, array="plain", value_tables=False,
            whole_sums=False),
    Machine(name="fit-11", lanes=8, clusters=8, post_lanes=1, bus_bytes=4, activation_bytes=256 * _KIB,
            weight_bytes=128 * _KIB, result_bytes=8 * _KIB, parameter_channels=256, queue_depth=32,
            residual_adder=False, whole_sums=False),
    Machine(name="fit-12", lanes=2, clusters=2, tiles=2, post_lanes=2, bus_bytes=4, activation_bytes=32 * _KIB,
            weight_bytes=32 * _KIB, result_bytes=64 * _KIB, queue_depth=4, value_tables=False,
            max_pooling=False, whole_sums=False),
    Machine(name="fit-13", lanes=1, clusters=1, post_lanes=1, bus_bytes=16, activation_bytes=64 * _KIB,
            weight_bytes=128 * _KIB, result_bytes=2 * _KIB, parameter_channels=32, queue_depth=8,
            column_reuse=False, value_tables=False, whole_sums=False),
    Machine(name="fit-14", lanes=2, clusters=1, post_lanes=2, bus_bytes=8, activation_bytes=32 * _KIB,
            weight_bytes=128 * _KIB, result_bytes=64 * _KIB, queue_depth=4, array="inner", paired_rows=False,
            chaining=False, whole_sums=False),
    Machine(name="fit-15", lanes=4, clusters=1, post_lanes=4, bus_bytes=4, activation_bytes=32 * _KIB,
            weight_bytes=256 * _KIB, result_bytes=256 * _KIB, queue_depth=32, max_pooling=False,
            chaining=False, whole_sums=False),
    Machine(name="fit-16", lanes=2, clusters=2, post_lanes=2, bus_bytes=16, activation_bytes=512 * _KIB,
            weight_bytes=128 * _KIB, result_bytes=64 * _KIB, parameter_channels=256, queue_depth=8,
            array="plain", residual_adder=False, max_pooling=False, whole_sums=False),
    Machine(name="fit-17", lanes=2, clusters=1, post_lanes=2, bus_bytes=8, activation_bytes=512 * _KIB,
            weight_bytes=16 * _KIB, result_bytes=128 * _KIB, parameter_channels=32, residual_adder=False,
            whole_sums=False),
    Machine(name="fit-18", lanes=1, clusters=1, tiles=1, post_lanes=1, bus_bytes=8, activation_bytes=32 * _KIB,
            result_bytes=16 * _KIB, parameter_channels=512, queue_depth=8, array="plain",
            residual_adder=False, chaining=False, whole_sums=False),
    Machine(name="fit-19", lanes=4, clusters=1, post_lanes=1, bus_bytes=16, activation_bytes=512 * _KIB,
            weight_bytes=32 * _KIB, result_bytes=64 * _KIB, parameter_channels=2048, queue_depth=4,
            column_reuse=False, whole_sums=False),
    Machine(name="fit-20", lanes=8, clusters=2, post_lanes=8, bus_bytes=16, activation_bytes=256 * _KIB,
            weight_bytes=128 * _KIB, result_bytes=16 * _KIB, parameter_channels=128, queue_depth=4,
            array="inner", max_pooling=False, whole_sums=False),
    Machine(name="fit-21", lanes=1, clusters=1, post_lanes=1, bus_bytes=4, activation_bytes=64 * _KIB,
            weight_bytes=256 * _KIB, result_bytes=8 * _KIB, parameter_channels=2048, queue_depth=8,
            column_reuse=False, residual_adder=False, max_pooling=False, whole_sums=False),
    Machine(name="fit-22", lanes=2, clusters=1, post_lanes=1, bus_bytes=4, activation_bytes=8 * _KIB,
            weight_bytes=8 * _KIB, result_bytes=8 * _KIB, parameter_channels=256, value_tables=False,
            chaining=False),
    Machine(name="fit-23", lanes=4, clusters=4, tiles=1, post_lanes=1, bus_bytes=8, activation_bytes=256 * _KIB,
            result_bytes=128 * _KIB, parameter_channels=512, queue_depth=8, array="plain",
            chaining=False, whole_sums=False),
    Machine(name="fit-24", lanes=8, clusters=8, tiles=1, post_lanes=8, bus_bytes=16, weight_bytes=256 * _KIB,
            paired_rows=False, residual_adder=False, whole_sums=False),
    Machine(name="fit-25", lanes=2, clusters=1, post_lanes=1, bus_bytes=8, activation_bytes=32 * _KIB,
            weight_bytes=16 * _KIB, result_bytes=256 * _KIB, parameter_channels=2048, queue_depth=64,
            column_reuse=False, paired_rows=False, value_tables=False, whole_sums=False),
    Machine(name="fit-26", whole_sums=False),
    Machine(name="fit-27", lanes=2, clusters=1, post_lanes=1, bus_bytes=4, activation_bytes=64 * _KIB,
            weight_bytes=32 * _KIB, result_bytes=8 * _KIB, parameter_channels=256, queue_depth=8,
            array="winograd_inner", paired_rows=False),
    Machine(name="fit-28", lanes=2, clusters=1, post_lanes=2, bus_bytes=16, activation_bytes=16 * _KIB,
            weight_bytes=64 * _KIB, parameter_channels=512, array="winograd_inner", residual_adder=False,
            whole_sums=False),
    Machine(name="fit-29", lanes=4, clusters=2, post_lanes=4, bus_bytes=8, activation_bytes=256 * _KIB,
            weight_bytes=128 * _KIB, array="winograd_inner", max_pooling=False, chaining=False, whole_sums=False),
    Machine(name="fit-30", lanes=4, clusters=1, post_lanes=2, bus_bytes=4, activation_bytes=32 * _KIB,
            weight_bytes=32 * _KIB, result_bytes=16 * _KIB, parameter_channels=512, queue_depth=32,
            array="winograd_inner", column_reuse=False, value_tables=False, whole_sums=False),
)


def designs() -> list[Machine]:
    """Return all machines that are synthesised for the fit: the small ones first, the presets among them by size."""
    return sorted([*FITTED_MACHINES, *PRESETS.values()], key=_work)


def _work(machine: Machine) -> int:
    """Return about how long synthesis takes, in steps of four lanes: within a step the order of the list holds."""
    return (machine.lanes + machine.post_lanes) // 4
