"""A network read once and predicted on one design after the other: cycles, counters and energy without values."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tilewright.compiler.compile import Compiled, compile_layers
from tilewright.compiler.explain import Explanation, explain
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.extension import extension_of
from tilewright.runtime.design.design import Design
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report
from tilewright.runtime.execution.report import Report
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.tools.progress import Silence, Steps

__all__ = ["PredictedNetwork"]


class PredictedNetwork:
    """A network to be priced on many designs.

    Reading the file, quantising it and the compiler's passes do not depend on the design, and are done once, here;
    :meth:`predict` then plans and schedules for one machine, and runs the cycle model::

        network = PredictedNetwork.named("resnet18-32")
        for text in ("base", "base,lanes=8", "camera.toml"):
            report = network.predict(design_of(text))
            print(report.cycles, report.milliseconds, report.energy.total_uj)

    An object may be pickled, and used in another process.

    Parameters
    ----------
    source : ModelSource
        As `runtime.model_source.find_model` returns it.
    options : Options
        Options of the compiler.
    outputs_only : bool
        Store only the tensors that the network needs, as a compiled model does.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    """

    def __init__(self, source: ModelSource, options: Options = BEST, *, outputs_only: bool = False) -> None:
        self.source, self.outputs_only = source, outputs_only
        self.options = options
        self.network: Network = replace(compile_network(source.path, options), name=source.path.stem)

    @classmethod
    def named(cls, model: str, options: Options = BEST, *, steps: Steps | None = None, calibrate: Path | None = None,
              shapes: Mapping[str, Sequence[int]] | None = None) -> "PredictedNetwork":
        """Return the network of a model as the command line names it: a built-in one, or a file.

        Raises
        ------
        CompileError
            If the model is invalid or not supported.
        InputError
            If there is no such model.
        """
        return cls(find_model(model, steps or Silence(), calibrate=calibrate, shapes=shapes), options)

    @property
    def name(self) -> str:
        """Name of the model's file, without its suffix."""
        return self.network.name

    def compiled(self, design: Design) -> Compiled:
        """Return the network compiled for a design's machine as `tilewright run` does, but for loops in the program.

        Raises
        ------
        CompileError
            If a layer does not fit the machine.
        """
        own, network = extension_of(design.machine), self.network
        if own is not None:  # the passes have an operator more
            network = replace(compile_network(self.source.path, self.options, own), name=self.name)
        return compile_layers(network, design.machine, keep_tensors=not self.outputs_only, options=self.options,
                              loops=False)

    def predict(self, design: Design) -> Report:
        """Return the report of one inference on a design: the cycles and counters that engine ``fast`` gives.

        Energy differs from that engine's in the toggles of the array's operands alone, which are those of typical data.

        Raises
        ------
        CompileError
            If a layer does not fit the machine.
        InputError
            If there is no such technology.
        ExecutionError
            If the program waits for what nobody signals.
        """
        return self._report(self.compiled(design), design)

    def predict_with_bytes(self, design: Design) -> tuple[Report, int]:
        """Return the same report and the bytes of weights and constants; raises the same errors as :meth:`predict`."""
        compiled = self.compiled(design)
        return self._report(compiled, design), sum(len(data) for _, data in compiled.images)

    def predict_with_plan(self, design: Design) -> tuple[Report, Explanation]:
        """Return the same report and the plan of each layer; raises the same errors as :meth:`predict`."""
        compiled = self.compiled(design)
        return self._report(compiled, design), explain(compiled)

    def _report(self, compiled: Compiled, design: Design) -> Report:
        return predict_report(job_of_compiled(compiled, self.name), design.timing, design.pricing)
