# amaranth: UnusedElaboratable=no
"""The campaign of hostile programs: ``python -m tests.cocotb.stop --count 300 --seed 0``, half of them on each port."""

import argparse

from tests.support.bench import run_bench
from tests.support.machines import MACHINES
from tilewright.isa.command_port import PORTS, PortName
from tilewright.rtl.axilite_coprocessor import AxiLiteCoprocessor
from tilewright.rtl.xif_coprocessor import XifCoprocessor

__all__ = ["run_campaign"]

MACHINE = "nano"
COPROCESSORS = {"cvxif": XifCoprocessor, "axi4lite": AxiLiteCoprocessor}


def run_campaign(port: PortName, count: int, seed: int) -> None:
    """Stop or abort ``count`` hostile programs at random cycles, on memory of random latency and rate."""
    run_bench(COPROCESSORS[port](MACHINES[MACHINE]), module="tests.cocotb.stop.bench_stop", toplevel=f"stop_{port}",
              environment={"PORT": port, "COUNT": count, "COPROCESSOR_MACHINE": MACHINE}, seed=seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for port in PORTS:
        count = options.count // len(PORTS)
        run_campaign(port, count, options.seed)
        print(f"{port}: {count} hostile programs ended within the bound; the next ones were exact")


if __name__ == "__main__":
    main()
