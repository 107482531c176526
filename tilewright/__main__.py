"""``python -m tilewright`` is the command ``tilewright``."""

from tilewright.runtime.cli import main

if __name__ == "__main__":
    main()
