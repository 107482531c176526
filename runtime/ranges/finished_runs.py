"""Finished simulations, kept in the cache, so that an interrupted run continues where it was."""

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import astuple
from pathlib import Path

import numpy as np

from tilewright.errors import SimulationError
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import to_json
from tilewright.runtime.execution.engines import Execution
from tilewright.runtime.execution.job import Job
from tilewright.sim.values.operand_samples import OperandToggles
from tilewright.tools.files import write_arrays, write_file

__all__ = ["StoredRuns"]

_FIELDS = ("cycles", "instructions", "records", "wall_seconds", "cycles_per_second", "toggles", "predicted_cycles")


class StoredRuns:
    """Executions in RTL by a hash of all that they depend on: program, memory, inputs, machine, timing, simulator.

    Parameters
    ----------
    folder : Path
        Where they are, each in a folder of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def key(self, job: Job, inputs: Mapping[str, np.ndarray], timing: MemoryTiming, simulator: Path) -> str:
        """Return the name of a run; ``simulator`` lies in a folder that is named by its own hash."""
        digest = hashlib.sha256(repr((job.machine, timing, simulator.parent.name, job.windows)).encode())
        digest.update(json.dumps(to_json(job.program)).encode())
        digest.update(repr([(name, address) for name, (_, address) in job.tensors.items()]).encode())
        for address, content in job.images:
            digest.update(f"image {address}".encode())
            digest.update(content if isinstance(content, bytes) else content.read_bytes())
        for name in sorted(inputs):
            digest.update(f"input {name}".encode())
            digest.update(inputs[name].tobytes())
        return digest.hexdigest()

    def load(self, key: str) -> Execution | None:
        """Return the run of that name, if it has been stored.

        Raises
        ------
        SimulationError
            If it is there and cannot be read.
        """
        facts, arrays = self._folder / key / "execution.json", self._folder / key / "tensors.npz"
        if not facts.exists():
            return None
        try:
            values = json.loads(facts.read_text(encoding="utf-8"))
            with np.load(arrays, allow_pickle=False) as archive:
                tensors = {name: archive[name] for name in archive.files}
            return Execution(**(values | {"tensors": tensors, "records": tuple(values["records"]),
                                          "toggles": tuple(values["toggles"]),
                                          "operands": tuple(OperandToggles(*each) for each in values["operands"])}))
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise SimulationError(f"Stored run {facts.parent} cannot be read; give --fresh to simulate "
                                  "again") from error

    def save(self, key: str, execution: Execution) -> None:
        """Store a run; it counts as stored once its last file is written, and each file is written whole."""
        folder = self._folder / key
        folder.mkdir(parents=True, exist_ok=True)
        write_arrays(folder / "tensors.npz", execution.tensors)
        facts = {name: getattr(execution, name) for name in _FIELDS}
        facts["operands"] = list(map(astuple, execution.operands))
        write_file(folder / "execution.json", json.dumps(facts).encode())
