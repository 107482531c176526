"""Stands for `tests.fuzz.mutate` where the limits are tested: each mutant misbehaves in another way."""

import os
import time
from pathlib import Path


def run_mutant(seed: int, number: int, folder: Path) -> str:
    """Behave, raise, hang, die, or take all memory."""
    if number == 1:
        raise ZeroDivisionError(f"{seed} in {folder}")
    if number == 2:
        time.sleep(60)
    if number == 3:
        os._exit(3)
    if number == 4:
        return f"took {len(bytearray(3 << 30))} bytes"
    while number == 5:
        pass
    return "behaved"
