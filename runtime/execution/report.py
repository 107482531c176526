"""The cost of a run: cycles by cause, bytes moved and energy, for each layer and in all; and its JSON form.

The cycles of a layer are those between two status records, so they add up: layers plus the tail (from the last
record to the end of the program) are the run. Energy adds up the same way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.isa.core_names import HOST_CORE, HostName
from tilewright.runtime.execution.core_share import CorePart, CoreShare, core_share
from tilewright.runtime.execution.verdict import Judged, TensorVerdict, counts

if TYPE_CHECKING:
    # For types alone: whoever reads a report needs no energy model.
    from tilewright.energy.energies import Amount, EnergyEstimate
    from tilewright.energy.imported_power import ImportedPower
    from tilewright.isa.machine import MemoryTiming

__all__ = ["LayerReport", "Report", "add_counts", "energy_json"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerReport:
    """One layer's share of a run.

    Attributes
    ----------
    name, kind, algorithm : str
        ``kind`` as in `compiler.network.layers.Layer`; ``algorithm`` is the instruction that computes it. Both are
        ``core`` if the host core computes it.
    onnx_nodes : tuple of str
        Nodes of the model that were fused into it.
    macs : int
        Multiply-accumulates of the ONNX operator.
    cycles : int
    stalls : dict of str to int
        Cycles in which the multipliers did not issue, by cause (``mac_*`` of isa.counters). Together with the cycles in
        which they did, they are all cycles of the layer.
    bytes_read, bytes_written : int
        Main memory traffic.
    activation_bytes_read : int
        From the activation buffer.
    energy : EnergyEstimate
        The host core's part is distributed by commands, and by the layers that it computes itself.
    reason : str
        Reason why the host core computes the layer; empty if it does not.
    operator : str
        ONNX operator that the host core computes; empty if it does not.
    toggles : dict of str to int
        Register bits of each block of the coprocessor that changed.
    counts : dict of str to int
        All counters of isa.counters.
    instructions : int
        The layer's share of the instructions that the host core retired.
    curved_words : int
        Words of 16 bits that followed a curve behind requantisation.
    """

    name: str
    kind: str
    algorithm: str
    onnx_nodes: tuple[str, ...]
    macs: int
    cycles: int
    stalls: dict[str, int]
    bytes_read: int
    bytes_written: int
    activation_bytes_read: int
    energy: "EnergyEstimate"
    reason: str = ""
    operator: str = ""
    toggles: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    instructions: int = 0
    curved_words: int = 0

    @property
    def main_stall(self) -> str | None:
        """The cause of most stall cycles, if there are any."""
        cause = max(self.stalls, key=lambda name: self.stalls[name])
        return cause if self.stalls[cause] else None

    def to_json(self) -> dict[str, Any]:
        """Return the layer's entry in the JSON of the report."""
        return {"name": self.name, "kind": self.kind, "algorithm": self.algorithm,
                "onnx_nodes": list(self.onnx_nodes), "macs": self.macs, "cycles": self.cycles,
                "stalls": dict(self.stalls), "bytes_read": self.bytes_read,
                "bytes_written": self.bytes_written, "activation_bytes_read": self.activation_bytes_read,
                "energy_uj": self.energy.total_uj, "energy": energy_json(self.energy), "toggles": dict(self.toggles),
                "counters": dict(self.counts)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole run.

    Attributes
    ----------
    model, machine, engine : str
    host : HostName
        The host core.
    memory : MemoryTiming
    multipliers : int
    cycles : int
        From reset to the end of the program.
    images : int
        Images that the run computed: the batch for which the model was compiled.
    predicted_cycles : int or None
        The same on CV32E40X, as predicted by engine ``fast``; None if that engine did not run.
    asleep_cycles : int
        Cycles in which the host core slept (``--wait wfi``); its clock is not charged for them.
    instructions : dict of str to int
        Number of executed commands by mnemonic, and under ``riscv`` of instructions that the host core retired.
    energy : EnergyEstimate
    technology : str
        Technology of the prices, and whether they are calibrated.
    technology_name, dram : str
        The file of the prices, and the DRAM part of main memory.
    clock_mhz : float
        Clock frequency, which decides the leakage per cycle.
    clocks_gated : bool
        Whether clock gates stop the clock of idle blocks.
    design : dict
        Machine, memory, clock and energy in the form of a design file, with every value filled in.
    toggles : dict of str to int
        Register bits of each block of the coprocessor that changed.
    toggles_counted : bool
        Whether toggles were counted in RTL; otherwise they are predicted.
    imported : ImportedPower or None
        A vendor's power report of the design on an FPGA, the only source of energy on an FPGA.
    wall_seconds, simulated_cycles_per_second : float
        Of the simulation.
    layers : tuple of LayerReport
    matches_reference : bool or None
        Whether every compared tensor equals ONNX Runtime's, or is off as declared; None if none was compared.
    judged, judged_outputs : tuple of Judged
        The comparison with ONNX Runtime of each layer, in order, and of each output of the model; none if there was
        no comparison.
    notes : tuple of str
        Source of the inputs, and what was compared.
    """

    model: str
    machine: str
    engine: str
    memory: "MemoryTiming"
    multipliers: int
    cycles: int
    instructions: dict[str, int]
    energy: "EnergyEstimate"
    technology: str
    wall_seconds: float
    simulated_cycles_per_second: float
    layers: tuple[LayerReport, ...]
    matches_reference: bool | None = None
    judged: tuple[Judged, ...] = ()
    judged_outputs: tuple[Judged, ...] = ()
    notes: tuple[str, ...] = ()
    technology_name: str = ""
    dram: str = ""
    clock_mhz: float = 0.0
    clocks_gated: bool = False
    design: dict[str, Any] = field(default_factory=dict)
    toggles: dict[str, int] = field(default_factory=dict)
    toggles_counted: bool = False
    imported: "ImportedPower | None" = None
    host: HostName = HOST_CORE
    predicted_cycles: int | None = None
    asleep_cycles: int = 0
    images: int = 1

    @property
    def title(self) -> str:
        """Model, machine and engine; the host core only if it is not CV32E40X."""
        host = "" if self.host == HOST_CORE else f", host {self.host}"
        batch = "" if self.images == 1 else f", a batch of {self.images}"
        return f"{self.model} on {self.machine}, engine {self.engine}{host}{batch}"

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all layers."""
        return sum(layer.macs for layer in self.layers)

    @property
    def verdicts(self) -> tuple[TensorVerdict | None, ...]:
        """The verdict of each layer; None where there was no comparison."""
        if len(self.judged) != len(self.layers):
            return (None,) * len(self.layers)
        return tuple(each.verdict for each in self.judged)

    @property
    def core_share(self) -> CoreShare:
        """The host core's share of the cycles, and its causes."""
        return core_share((CorePart(layer.name, layer.operator, layer.reason, layer.cycles)
                           for layer in self.layers if layer.algorithm == "core"), self.cycles)

    @property
    def core_cycles(self) -> int:
        """Cycles of the layers that the host core computes."""
        return sum(layer.cycles for layer in self.layers if layer.algorithm == "core")

    @property
    def macs_per_multiplier_cycle(self) -> float:
        """Useful work of each multiplier and cycle; above 1 where Winograd saves multiplications."""
        return self.macs / (self.multipliers * self.cycles)

    @property
    def cycles_per_image(self) -> float:
        """Cycles per image of the run."""
        return self.cycles / self.images

    @property
    def milliseconds(self) -> float:
        """Time of the run, with all its images, at the clock of the report."""
        return self.cycles / (1e3 * self.clock_mhz)

    @property
    def inferences_per_second(self) -> float:
        """Images per second if such runs follow each other without a pause, at the clock of the report."""
        return 1e3 * self.images / self.milliseconds

    @property
    def milliwatts(self) -> float:
        """Power while inferences follow each other without a pause: energy over time."""
        return self.energy.total_uj / self.milliseconds

    @property
    def tail_cycles(self) -> int:
        """Cycles after the last layer's record."""
        return self.cycles - sum(layer.cycles for layer in self.layers)

    def to_json(self) -> dict[str, Any]:
        """Return the report as dicts, lists and numbers; the keys are a contract."""
        return {
            "model": self.model,
            "machine": self.machine,
            "engine": self.engine,
            "host": self.host,
            "memory": self.memory.to_json(),
            "design": dict(self.design),
            "cycles": self.cycles,
            "images": self.images,
            "cycles_per_image": self.cycles_per_image,
            "predicted_cycles": self.predicted_cycles,
            "asleep_cycles": self.asleep_cycles,
            "milliseconds": self.milliseconds,
            "inferences_per_second": self.inferences_per_second,
            "milliwatts": self.milliwatts,
            "macs": self.macs,
            "multipliers": self.multipliers,
            "macs_per_multiplier_cycle": self.macs_per_multiplier_cycle,
            "instructions": dict(self.instructions),
            "core_share": self.core_share.to_json(),
            "matches_reference": self.matches_reference,
            "compared": {"layers": counts(each.verdict for each in self.judged),
                         "outputs": counts(each.verdict for each in self.judged_outputs)},
            "outputs": [each.to_json() for each in self.judged_outputs],
            "energy": energy_json(self.energy) | {
                "technology": self.technology_name, "dram": self.dram, "clock_mhz": self.clock_mhz,
                "clocks_gated": self.clocks_gated},
            "toggles": dict(self.toggles),
            "toggles_from": "rtl" if self.toggles_counted else "predicted",
            "imported_power": self._imported_json(),
            "wall_seconds": self.wall_seconds,
            "simulated_cycles_per_second": self.simulated_cycles_per_second,
            "layers": [layer.to_json() | {"comparison": verdict and verdict.to_json()}
                       for layer, verdict in zip(self.layers, self.verdicts, strict=True)],
        }

    def _repr_html_(self) -> str:
        """Return the report as a table, as a notebook shows it."""
        from tilewright.tools.templates import render

        return render(Path(__file__).with_name("report.html.j2"), report=self)

    def _imported_json(self) -> dict[str, Any] | None:
        if self.imported is None:
            return None
        static, dynamic = self.imported.energy_uj(self.cycles)
        return asdict(self.imported) | {"static_uj": static, "dynamic_uj": dynamic, "total_uj": static + dynamic}


def add_counts(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of counts by name."""
    sums: dict[str, int] = {}
    for part in parts:
        for name, count in part.items():
            sums[name] = sums.get(name, 0) + count
    return sums


def energy_json(energy: "EnergyEstimate") -> dict[str, Any]:
    """Return energies with both ranges, of all and by component; ``low_uj`` and ``high_uj`` are the absolute range."""
    return {"total_uj": energy.total_uj, "low_uj": energy.low_uj, "high_uj": energy.high_uj,
            "by_component": dict(energy.by_component), **_ranges(energy.total),
            "components": {name: {"uj": each.uj, **_ranges(each)} for name, each in energy.components.items()}}


def _ranges(amount: "Amount") -> dict[str, float]:
    return {"relative_low_uj": amount.relative_low_uj, "relative_high_uj": amount.relative_high_uj,
            "absolute_low_uj": amount.absolute_low_uj, "absolute_high_uj": amount.absolute_high_uj}
