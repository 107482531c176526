"""Workers of a Ray cluster: a design is a task, repeated elsewhere if its worker or its node is lost."""

import logging
from concurrent.futures import Future

import ray

from tilewright.bench.exploration.design_cost import DesignOutcome, Evaluator
from tilewright.errors import InputError
from tilewright.runtime.design.design import Design

__all__ = ["RayWorkers"]


class RayWorkers:
    """All processors of a Ray cluster; nodes may come and go.

    Tilewright must be installed on every node. Nobody but the process that explores writes to the exploration's folder.

    Parameters
    ----------
    evaluator : Evaluator
    address : str
        ``local`` for a cluster of this machine alone, ``auto`` for the one that this machine belongs to, or an address.

    Raises
    ------
    InputError
        If there is no such cluster.
    """

    lost: tuple[type[BaseException], ...] = (
        ray.exceptions.WorkerCrashedError, ray.exceptions.NodeDiedError, ray.exceptions.ActorDiedError,
        ray.exceptions.ObjectLostError, ray.exceptions.LocalRayletDiedError, ray.exceptions.OutOfMemoryError)

    def __init__(self, evaluator: Evaluator, address: str) -> None:
        self._began = not ray.is_initialized()
        if self._began:
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InputError(f"Ray cluster {address!r} cannot be reached: {error}") from error
        self._evaluator = ray.put(evaluator)
        self._task = ray.remote(num_cpus=1, max_retries=0)(_evaluate)

    @property
    def width(self) -> int:
        """Processors of the cluster as it is now."""
        return max(1, int(ray.cluster_resources().get("CPU", 1)))

    def submit(self, design: Design) -> "Future[DesignOutcome]":
        """Let a design be evaluated by any worker."""
        future: Future[DesignOutcome] = self._task.remote(self._evaluator, design).future()
        return future

    def close(self) -> None:
        """Leave the cluster; end it if it was started here."""
        if self._began:
            ray.shutdown()


def _evaluate(evaluator: Evaluator, design: Design) -> DesignOutcome:
    """Return what a design costs, on a worker of the cluster."""
    return evaluator.evaluate(design)
