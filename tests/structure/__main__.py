"""Print the figures of the project's structure: ``python -m tests.structure [--root FOLDER] [--check] [--causes]``."""

import argparse
import sys
from pathlib import Path

from tests.structure.figures import compile_walk, figures, start_times
from tests.structure.source import ROOT


def main() -> int:
    """Print a table of figures; with ``--check``, only those over their limits, and exit with 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT, help="a checkout, by default this one")
    parser.add_argument("--check", action="store_true", help="print what exceeds its limit, and fail if anything does")
    parser.add_argument("--causes", action="store_true", help="name what makes each figure as large as it is")
    given = parser.parse_args()
    found = figures(given.root)
    if given.check:
        over = [figure for figure in found if not figure.kept]
        for figure in over:
            print(f"{figure.name}: at most {figure.limit:g}, not {figure.value:g}\n  " + "\n  ".join(figure.causes))
        return bool(over)
    for figure in (*found, *compile_walk(given.root), *start_times(given.root)):
        limit = "" if figure.limit is None else f"at most {figure.limit:g}"
        print(f"{figure.name:50} {figure.value:10g}  {limit}")
        if given.causes:
            for cause in figure.causes:
                print(f"    {cause}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
