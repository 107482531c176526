"""Arrays of int8 at the ends of its range, and at random."""

import numpy as np

KINDS = ("random", "extremes", "lowest", "highest")


def int8_values(kind, shape, seed):
    """Return int8 values of one of ``KINDS``: random, of both extremes, or all of one."""
    rng = np.random.default_rng(seed)
    if kind == "random":
        return rng.integers(-128, 128, shape).astype(np.int8)
    if kind == "extremes":
        return rng.choice(np.array([-128, 127], np.int8), shape)
    return np.full(shape, {"lowest": -128, "highest": 127}[kind], np.int8)
