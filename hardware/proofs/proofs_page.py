"""The page docs/proofs.md: every property with the result of its proof.

``python -m tilewright.hardware.proofs.proofs_page`` prints a line for each property and ends with status 1 if one is
not proved; ``-o docs/proofs.md`` writes the page too, and names of properties limit it to those.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from tilewright.hardware.proofs.properties import PROPERTIES
from tilewright.hardware.proofs.protocol_proof import NAME, prove_protocol
from tilewright.hardware.proofs.proving import ProofRow, prove
from tilewright.tools.files import write_file
from tilewright.tools.page_origin import with_origin
from tilewright.tools.templates import render

__all__ = ["main", "page"]

_SECONDS = 240
"""Time limit of the solver for a property and each of its mutants."""


def page(rows: Sequence[ProofRow]) -> str:
    """Return the page about ``rows``."""
    return render(Path(__file__).with_name("proofs_page.md.j2"), rows=rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prove, print, write; return the exit status."""
    proofs: dict[str, Callable[[], ProofRow]] = {
        each.name: partial(prove, each, seconds=_SECONDS, progress=_show) for each in PROPERTIES}
    proofs[NAME] = partial(prove_protocol, _show)
    parser = argparse.ArgumentParser(description="Prove properties of the gateware.")
    parser.add_argument("name", nargs="*", help=f"one of {', '.join(proofs)}; all if none is given")
    parser.add_argument("-o", "--output", type=Path, help="write the table as a page")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.name) - set(proofs):
        parser.error(f"property must be one of {', '.join(proofs)}, not {', '.join(sorted(unknown))}")
    rows = []
    for name, made in proofs.items():
        if chosen.name and name not in chosen.name:
            continue
        row = made()
        print(f"{row.name:20} {'FAILED' if row.failure else 'proved'} {row.seconds:6.1f} s  {row.engine}; covers: "
              f"{row.covers or 'none'}; mutants refuted: {', '.join(row.mutants) or 'none'}", flush=True)
        if row.failure:
            print(f"  {row.failure}", flush=True)
        rows.append(row)
    if chosen.output:
        write_file(chosen.output, with_origin(page(rows), "make prove").encode())
    return int(any(row.failure for row in rows))


def _show(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
