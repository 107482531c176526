# amaranth: UnusedElaboratable=no
"""The campaign of stops: ``python -m tests.cocotb.stop --hostile 300 --stops 300 --seed 0``, half on each port.

It ends with an error if one takes longer than the bound, hangs, or the program after it is not exact.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from tests.support.bench import run_bench
from tests.support.machines import MACHINES
from tilewright.isa.command_port import PORTS, PortName
from tilewright.rtl.axilite_coprocessor import AxiLiteCoprocessor
from tilewright.rtl.xif_coprocessor import XifCoprocessor

__all__ = ["run_campaign"]

MACHINE = "nano"
COPROCESSORS = {"cvxif": XifCoprocessor, "axi4lite": AxiLiteCoprocessor}


def run_campaign(port: PortName, hostile: int, stops: int, seed: int) -> list[dict[str, Any]]:
    """Stop or abort hostile programs, and ``stops`` others, at random cycles, on memory of random latency and rate.

    Returns
    -------
    list of dict
        Of each: whether it was ``hostile`` and ended by an ``abort``, the memory's ``latency``, the ``cycles`` until
        all was quiet, and those ``beyond_burst``, of which the bound allows 600.
    """
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        run_bench(COPROCESSORS[port](MACHINES[MACHINE]), module="tests.cocotb.stop.bench_stop",
                  toplevel=f"stop_{port}", seed=seed,
                  environment={"PORT": port, "COUNT": hostile, "STOPS": stops, "FIGURES": figures,
                               "COPROCESSOR_MACHINE": MACHINE})
        return json.loads(figures.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hostile", type=int, default=300)
    parser.add_argument("--stops", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--port", choices=PORTS, help="only the half on this port")
    options = parser.parse_args()
    for port in (options.port,) if options.port else PORTS:
        counts = (each // len(PORTS) for each in (options.hostile, options.stops))
        figures = run_campaign(port, *counts, options.seed)
        for hostile, what in ((True, "hostile programs"), (False, "stops of other programs")):
            chosen = [each for each in figures if each["hostile"] == hostile]
            longest, beyond = (max((each[name] for each in chosen), default=0) for name in ("cycles", "beyond_burst"))
            print(f"{port}: {len(chosen)} {what}, 0 beyond the bound, 0 hung, {len(chosen)} next programs exact; "
                  f"longest {longest} cycles, longest beyond a burst {beyond}", flush=True)


if __name__ == "__main__":
    main()
